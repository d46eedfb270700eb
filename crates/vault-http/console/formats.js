// The names, values and reasons by which credentials are read from text: one table for the console and `orgvault import`.
// Names are compared in lower case without punctuation, and without the words in `prefixes` and `stores` around them.
// The object is JSON, so that Rust can parse it.
export default {
  "fields": {
    "s3": {
      "access_key_id": ["accesskeyid", "accesskey", "accessid", "keyid", "applicationkeyid", "rootuser", "access", "key"],
      "secret_access_key": ["secretaccesskey", "secretkey", "secretaccess", "applicationkey", "rootpassword", "secret"],
      "session_token": ["sessiontoken", "securitytoken"],
      "bucket": ["bucket", "bucketname"],
      "region": ["region", "regionname", "defaultregion"],
      "endpoint_s3": ["s3endpointurl", "endpointurls3"],
      "endpoint": ["endpoint", "endpointurl", "endpointuri", "endpointhost", "endpointaddress", "customendpoint", "url", "uri", "baseurl", "baseuri", "host", "hostname", "hostbase", "hosturl", "server", "serverurl", "serveruri", "serverhost", "serveraddress", "serverendpoint", "address", "addr", "apiurl", "apihost", "apiendpoint", "gateway", "gatewayurl", "s3"],
      "endpoint_list": ["endpoints"],
      "port": ["port"],
      "scheme": ["scheme", "protocol"],
      "secure": ["secure", "usessl", "usehttps", "usetls", "ssl", "https", "tls", "connectionsslenabled", "sslenabled"],
      "sts_endpoint": ["stsendpoint", "stsendpointurl", "endpointurlsts", "stsurl", "stshost"],
      "key_prefix": ["keyprefix"],
      "path_style_access": ["pathstyleaccess", "forcepathstyle", "usepathstyle", "usepathstyleendpoint", "pathstyle", "addressingstyle", "urlstyle"],
      "virtual_hosted": ["virtualhostedstylerequest", "virtualhostedstyle", "virtualhoststyle", "usevirtualhostedstyle", "usevirtualhoststyle", "usevirtualaddressing", "virtualhosted"],
      "host_bucket": ["hostbucket"],
      "role_arn": ["rolearn"],
      "external_id": ["externalid", "roleexternalid", "assumerolekwargsexternalid"],
      "sse_kms_key_id": ["ssekmskeyid"],
      "expires_at": ["expiration", "sessionexpiration", "credentialexpiration", "xsecuritytokenexpires", "expiresat"]
    },
    "azure_identity": {
      "tenant_id": ["tenantid", "tenant", "directoryid", "directorytenantid"],
      "client_id": ["clientid", "appid", "applicationid", "applicationclientid"],
      "client_secret": ["clientsecret", "clientsecretvalue", "password"],
      "connection_string": ["connectionstring"],
      "container": ["container", "containername"],
      "key_prefix": ["keyprefix"],
      "account": ["account", "accountname", "storageaccount", "storageaccountname"],
      "account_key": ["accountkey", "storageaccountkey", "storagekey", "accesskey", "sharedaccesskey", "key"],
      "sas": ["sastoken", "sas", "sharedaccesssignature"],
      "sas_url": ["sasurl", "blobsasurl"],
      "address": ["endpoint", "endpointurl", "endpointuri", "blobendpoint", "blobserviceendpoint", "bloburl", "accounturl", "storageaccounturl", "accounthost", "serviceurl", "serviceendpoint", "url", "uri", "host", "hostname", "server", "address", "endpointsuffix", "suffix", "storageendpointsuffix", "storageendpoint"],
      "cloud": ["cloud", "cloudname", "environment", "cloudenvironment", "environmentname", "authorityhost", "authority", "authorityurl", "authorityuri", "loginendpoint", "activedirectoryendpoint", "activedirectoryendpointurl", "activedirectoryauthorityhost"]
    },
    "gcs": {
      "service_account_key": ["serviceaccountkey", "serviceaccountcredentials", "serviceaccountjson", "serviceaccount", "keyfiledict", "keyfilejson", "keyjson", "credentials", "credentialsjson", "applicationcredentials", "applicationcredentialsjson", "keyfile", "key"],
      "bucket": ["bucket", "bucketname"],
      "key_prefix": ["keyprefix"],
      "universe": ["universedomain", "universe"],
      "address": ["endpoint", "endpointurl", "apiendpoint", "url", "host", "server", "baseurl"]
    },
    "direct-link": {
      "url": ["url", "link", "href"],
      "headers": ["headers"],
      "expires_at": ["expiresat"]
    }
  },
  "prefixes": ["aws", "amazon", "s3", "s3a", "fs", "azure", "arm", "google", "gcp", "gcs", "storage", "objectstorage", "objectstore", "object", "bucket", "service", "clientkwargs", "configkwargs", "sessionkwargs", "config", "extra", "credentials", "value", "default", "tfvar", "django", "my", "client"],
  "stores": ["minio", "r2", "cloudflare", "b2", "backblaze", "wasabi", "spaces", "do", "digitalocean", "scw", "scaleway", "ovh", "hetzner", "linode", "ibm", "ibmcos", "cos", "coshmackeys", "oss", "aliyun", "alibaba", "alibabacloud", "tencent", "tencentcloud", "qcloud", "obs", "huawei", "huaweicloud", "ceph", "rgw", "rook", "storj", "exoscale", "vultr", "qiniu", "idrive", "filebase", "tigris", "garage", "seaweedfs", "hmac"],
  "names_of_stores": ["applicationkey", "applicationkeyid", "rootuser", "rootpassword"],
  "refused": {
    "key-of-host": ["keypath"],
    "browser-login": ["ssosession", "ssostarturl", "ssoaccountid", "ssorolename", "ssoregion", "loginsession"],
    "program": ["credentialprocess"],
    "elsewhere": ["credentialsource", "webidentitytokenfile", "profilename", "s3configfile", "keysecretname", "managedidentityclientid"],
    "mfa": ["mfaserial"],
    "not-supported": ["ssecustomerkey", "ssecustomerkeybase64", "ibmapikey", "iamrole", "assumerolemethod", "federation"]
  },
  "refused_if_true": ["usefipsendpoint", "usedualstackendpoint", "usedualstack", "useaccelerateendpoint", "v2auth", "signaturev2", "requesterpays", "requestpays", "ignoreconfiguredendpointurls", "directorybucket", "useemulator", "usemsi", "useaz", "disableinstancediscovery"],
  "refused_unless_true": ["verify", "verifyssl", "sslverify", "checksslcertificate"],
  "address_words": ["endpoint", "endpoints", "host", "hostname", "url", "urls", "uri", "server", "address", "addr", "addressing", "cloud", "domain", "gateway", "proxy", "universe", "authority", "suffix", "partition"],
  "azure_words": ["environment"],
  "harmless": ["description", "comment", "note", "notes", "owner", "contact", "docs", "documentation", "wiki", "runbook", "ticket", "homepage", "dashboard", "website", "websiteendpoint", "websiteindex", "websiteerror", "consoleurl", "consolehost", "consoleloginlink", "consoleloginurl", "signinurl", "loginlink", "serversideencryption", "listurlencode", "urlencodingmode", "stsregionalendpoints", "useast1regionalendpoint", "s3useast1regionalendpoint", "endpointdiscoveryenabled", "ec2metadataserviceendpoint", "ec2metadataserviceendpointmode", "accountidendpointmode", "ec2metadatav1disabled", "cloudfronthost", "cloudfrontresource", "simpledbhost", "checksslhostname", "publicurlusehttps", "signurlusehttps", "proxyport", "resourcemanagerendpointurl", "activedirectorygraphresourceid", "activedirectorygraphendpointurl", "graphendpointurl", "microsoftgraphendpointurl", "sqlmanagementendpointurl", "galleryendpointurl", "managementendpointurl", "vmimagealiasdocumentationendpoint", "publicaccess", "publicurl", "cdnurl", "source", "cabundle"],
  "harmless_values": ["aws", "amazon", "amazons3", "prod", "production", "dev", "development", "test", "testing", "staging", "stage", "qa", "live"],
  "defaults": { "assumerolemethod": "assumerole" },
  "harmless_prefixes": ["awsendpointurl"],
  "flags": { "true": true, "1": true, "yes": true, "on": true, "path": true, "false": false, "0": false, "no": false, "off": false, "virtual": false, "virtualhosted": false, "vhost": false, "host": false, "dns": false, "": null, "auto": null, "default": null, "unset": null },
  "rclone": {
    "types": { "s3": "s3", "azureblob": "azure_identity", "google cloud storage": "gcs" },
    "virtual_hosted": ["AWS", "Alibaba", "Cubbit", "DigitalOcean", "Dreamhost", "GCS", "Hetzner", "HuaweiOBS", "ImpossibleCloud", "Intercolo", "Leviia", "Linode", "LyveCloud", "Netease", "OVHcloud", "Petabox", "Rabata", "RackCorp", "Scaleway", "Selectel", "Servercore", "Storj", "Synology", "TencentCOS", "Wasabi", "Zata"]
  },
  "airflow": {
    "types": { "aws": "s3", "s3": "s3", "wasb": "azure_identity", "azure": "azure_identity", "adls": "azure_identity", "azure_data_lake": "azure_identity", "google_cloud_platform": "gcs" }
  },
  "azure_clouds": {
    "core.windows.net": ["azurecloud", "azurepublic", "azurepubliccloud", "azure", "public", "loginmicrosoftonlinecom", "loginwindowsnet"],
    "core.chinacloudapi.cn": ["azurechinacloud", "azurechina", "china", "loginchinacloudapicn", "loginpartnermicrosoftonlinecn"],
    "core.usgovcloudapi.net": ["azureusgovernment", "azureusgovernmentcloud", "azuregovernment", "usgovernment", "usgov", "usgovernmentl4", "loginmicrosoftonlineus"],
    "core.cloudapi.de": ["azuregermancloud", "azuregermany", "german", "germany", "loginmicrosoftonlinede"]
  },
  "azure_services": ["blob", "dfs"],
  "reasons": {
    "browser-login": "the profile signs in with a browser, which a job cannot do",
    "program": "a program creates the key, so there is no key in the file",
    "elsewhere": "the key comes from the environment or another file",
    "mfa": "the role requires an MFA code, which a job cannot provide",
    "not-supported": "this setting cannot be saved, and the key may not work without it",
    "not-understood": "this looks like an address or a required setting, and is not recognized",
    "conflict": "another field specifies a different value",
    "address": "expected an address such as https://s3.example.com:9000, without a user, path or query",
    "style": "expected path, virtual or auto",
    "flag": "expected true or false",
    "spaces": "the value contains spaces, so where it ends is unclear",
    "text": "expected a text",
    "endpoint-needed": "the key is not for Amazon S3, and the endpoint is missing",
    "endpoint-list": "this is the address of a list of endpoints: choose the endpoint of your bucket from it",
    "cloud": "this is not an Azure cloud that is supported",
    "other-cloud": "the connection string belongs to another Azure cloud",
    "account-needed": "the storage account is missing: add account_name, or a connection_string",
    "other-account": "the address belongs to another storage account",
    "sas": "the URL has no signature",
    "universe": "the key file belongs to another universe",
    "google-address": "only the addresses of the key's own universe are supported",
    "chain": "the source profile assumes a role itself, and a credential contains only one role",
    "no-source": "the file has no profile of this name. Pass the config and the credentials file together",
    "no-services": "the file has no services section of this name",
    "key-file": "cannot read the key file",
    "no-key": "the entry has no service account key",
    "key-of-host": "the key is in a file on the host of Airflow. Copy the file from there and save its content:",
    "type": "this type cannot be saved. rclone: s3, azureblob and google cloud storage can; Airflow: aws, wasb, adls and google_cloud_platform",
    "no-type": "the entry has no type",
    "unknown": "no field identifies what the entry is",
    "encrypted": "the file is encrypted: decrypt it first",
    "encoded": "the values of a Kubernetes Secret are encoded: decode them first",
    "object": "expected an object",
    "json": "expected a JSON object",
    "twice": "the name is used twice"
  }
};
