#!/bin/bash
# Runs SCRIPT on a separate host: an overlay of this system's files, so that commands of root change nothing outside it.
# Run it as root in separate mount, network and process namespaces: operate_host.sh DIRECTORY PROGRAM SOURCE SCRIPT
set -euo pipefail
directory=$1 program=$2 source=$3 script=$4
root=$directory/root
mount -t tmpfs tmpfs "$directory"
mkdir "$directory/upper" "$directory/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/upper,workdir=$directory/work" "$root"
mkdir -p "$root/src" "$root/root/desk"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$source" "$root/src"
touch "$root/usr/bin/orgvault"
mount --bind "$program" "$root/usr/bin/orgvault"
install -m 0755 "$source/packaging/debian/orgvault-admin" "$root/usr/sbin/orgvault-admin"
install -m 0755 "$script" "$root/script"
mkdir -p "$root/usr/share/doc/orgvault" && ln -sfn /src/docs "$root/usr/share/doc/orgvault/docs"
ln -s /src/docs /src/packaging "$root/root/desk/"

# Instead of systemd: starts the service as its unit and drop-ins specify, or stops it.
cat > "$root/usr/local/bin/systemctl" <<'END'
#!/bin/bash
set -euo pipefail
of_unit() { sed -n "s|^$1=||p" /etc/systemd/system/orgvault.service.d/*.conf 2> /dev/null | sed "s|%t|/run|g" || true; }
stop() {
    [ ! -e /run/orgvault.pid ] || { kill "$(cat /run/orgvault.pid)" 2> /dev/null || true; }
    while [ -e /run/orgvault.pid ] && kill -0 "$(cat /run/orgvault.pid)" 2> /dev/null; do sleep 0.05; done
    rm -f /run/orgvault.pid
}
start() {
    group=$(of_unit Group)
    group=${group:-orgvault}
    credentials=/run/credentials/orgvault.service
    install -d -m 0700 -o orgvault "$credentials"
    install -m 0400 -o orgvault /etc/orgvault/root.key "$credentials/root.key"
    [ -z "$(of_unit RuntimeDirectory)" ] || install -d -m 0710 -o orgvault -g "$group" "/run/$(of_unit RuntimeDirectory)"
    set -a
    [ ! -e /etc/orgvault/orgvault.env ] || . /etc/orgvault/orgvault.env
    for setting in $(of_unit Environment); do export "${setting?}"; done
    ORGVAULT_DATA_DIR=/var/lib/orgvault ORGVAULT_ROOT_KEY=file:$credentials/root.key
    set +a
    setpriv --reuid orgvault --regid "$group" --groups orgvault --bounding-set=-all --no-new-privs \
        orgvault serve --admin-listen 127.0.0.1:9464 < /dev/null > /var/log/orgvault.log 2>&1 &
    echo $! > /run/orgvault.pid
    until curl -fsS http://127.0.0.1:9464/readyz > /dev/null 2>&1; do
        kill -0 "$(cat /run/orgvault.pid)" 2> /dev/null || { cat /var/log/orgvault.log >&2; exit 1; }
        sleep 0.05
    done
}
case "$*" in
daemon-reload) ;;
"stop orgvault") stop ;;
"start orgvault" | "enable --now orgvault") start ;;
"restart orgvault") stop && start ;;
*) echo "systemctl: $*?" >&2 && exit 1 ;;
esac
END
printf '#!/bin/sh\nexec "$@"\n' > "$root/usr/local/bin/sudo"
chmod 0755 "$root/usr/local/bin/systemctl" "$root/usr/local/bin/sudo"
ip link set lo up
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LANG=C.UTF-8 \
    chroot "$root" bash -c 'cd /root/desk && exec /script'
