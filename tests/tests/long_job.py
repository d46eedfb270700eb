"""Reads one object repeatedly with one client, as a long job does, until the file `stop` exists."""

import os
import subprocess
import sys
import time

BUCKET = os.environ["ORGVAULT_BUCKET"]


def boto3_client(name):
    import boto3

    client = boto3.client("s3")
    return lambda: client.get_object(Bucket=BUCKET, Key=name)["Body"].read()


def s3fs_client(name):
    import s3fs

    # It reads AWS_ENDPOINT_URL_S3 and the container endpoint as botocore does.
    files = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    return lambda: files.cat_file(f"{BUCKET}/{name}")


def obstore_client(name):
    import obstore
    from obstore.store import S3Store

    store = S3Store(
        BUCKET,
        endpoint=os.environ["AWS_ENDPOINT_URL_S3"],
        region=os.environ["AWS_REGION"],
        client_options={"allow_http": True},
    )
    return lambda: bytes(obstore.get(store, name).bytes())


def duckdb_client(name):
    import duckdb
    from duckdb_extensions import import_extension

    for extension in ("httpfs", "aws"):
        import_extension(extension)
    connection = duckdb.connect()
    for extension in ("httpfs", "aws"):
        connection.load_extension(extension)
    connection.execute(open(os.environ["ORGVAULT_DUCKDB_SECRET"]).read())
    return lambda: str(connection.execute(f"SELECT count(*) FROM read_csv('s3://{BUCKET}/{name}')").fetchone()).encode()


def aws_client(name):
    command = ["aws", "s3", "cp", f"s3://{BUCKET}/{name}", "-"]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def rclone_client(name):
    command = ["rclone", "cat", f"orgvault:{BUCKET}/{name}"]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def main():
    tool = sys.argv[1]
    read = globals()[f"{tool}_client"](f"in/{tool}.csv")
    count = 0
    while not os.path.exists("stop"):
        assert read(), "empty"
        count += 1
        time.sleep(1)
    print(f"{tool}: {count} reads", flush=True)


main()
