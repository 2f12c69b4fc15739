#!/usr/bin/env bash
# Installs what the tests need besides Go, git and make, on Debian 12 as root or
# with sudo. It asks no questions, starts no service, and does nothing if
# everything is installed. If a tool cannot be installed, it fails and names the tool.
set -euo pipefail

missing=()  # Debian packages to install

# need FILE PACKAGE adds the package to missing if the file does not exist.
need() {
    [ -e "$1" ] || missing+=("$2")
}

# need_command NAME PACKAGE... adds the packages to missing if the command does not exist.
need_command() {
    local name=$1
    shift
    command -v "$name" >/dev/null || missing+=("$@")
}

survey() {
    missing=()
    need /usr/share/zookeeper/bin/zkServer.sh zookeeper
    need /usr/share/java/zookeeper.jar libzookeeper-java
    need /usr/share/java/slf4j-nop.jar libslf4j-java
    need /usr/share/java/servlet-api.jar libservlet-api-java
    need /usr/share/java/curator-recipes.jar libcurator-recipes-java
    need /usr/share/java/curator-x-discovery.jar libcurator-discovery-java
    need /usr/lib/python3/dist-packages/kazoo/client.py python3-kazoo
    need /usr/lib/python3/dist-packages/puresasl/client.py python3-pure-sasl
    need "$(ls /usr/lib/python3/dist-packages/kerberos.*.so 2>/dev/null || echo none)" python3-kerberos
    need /usr/include/zookeeper/zookeeper.h libzookeeper-mt-dev
    need /usr/include/stdio.h libc6-dev
    need /usr/sbin/krb5kdc krb5-kdc
    need /usr/sbin/kadmin.local krb5-admin-server
    need /usr/bin/kinit krb5-user
    need_command ip iproute2
    need_command tc iproute2
    PATH=$PATH:/usr/sbin:/sbin need_command losetup mount
    PATH=$PATH:/usr/sbin:/sbin need_command fsfreeze util-linux
    PATH=$PATH:/usr/sbin:/sbin need_command mkfs.ext4 e2fsprogs
    PATH=$PATH:/usr/sbin:/sbin need_command killall psmisc
    need_command pkill procps
    need_command pidof sysvinit-utils
    need_command setpriv util-linux
    need_command gcc gcc
    need_command curl curl
    need_command java default-jdk-headless
    need_command javac default-jdk-headless
    need_command node nodejs
    need_command npm npm
    need /usr/bin/chromium chromium
}

# Debian's packages prometheus and etcd-server start a service when they are installed. Only their
# programs are needed, so the packages are unpacked here and not installed.
programs_dir=/usr/local/lib/bellwether-interop

need_prometheus() {
    ! [ -x "$programs_dir/promtool" ] || ! [ -x "$programs_dir/prometheus" ]
}

# unpack PACKAGE PROGRAM... takes programs of /usr/bin from a package.
unpack() {
    local package=$1 dir
    shift
    dir=$(mktemp -d)
    (cd "$dir" && apt-get -qq download "$package" 2>/dev/null)
    dpkg-deb -x "$dir/$package"_*.deb "$dir"
    as_root install -D -t "$programs_dir" "${@/#/$dir/usr/bin/}"
    rm -rf "$dir"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "install-tools: root or sudo is needed to install: ${missing[*]}" >&2
        exit 1
    fi
}

# install-tools.sh etcd installs only what make bench-report needs besides.
if [ "${1:-}" = etcd ]; then
    [ -x "$programs_dir/etcd" ] && exit 0
    echo "install-tools: unpacking etcd-server"
    as_root apt-get -qq update
    unpack etcd-server etcd
    exit 0
fi

survey
[ ${#missing[@]} = 0 ] && ! need_prometheus && exit 0

if ! command -v apt-get >/dev/null; then
    echo "install-tools: this needs apt-get of Debian 12; install these packages yourself: ${missing[*]} prometheus" >&2
    exit 1
fi
echo "install-tools: installing ${missing[*]} $(need_prometheus && echo prometheus)"
as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
# Of the installed packages only those of Kerberos have services (ZooKeeper's is in zookeeperd).
# They do not start without a realm, and RUNLEVEL=1 keeps services from starting.
if [ ${#missing[@]} != 0 ]; then
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
fi
if need_prometheus; then
    unpack prometheus promtool prometheus
fi

survey
if need_prometheus; then
    echo "install-tools: unpacked, but not found afterwards: prometheus" >&2
    exit 1
fi
if [ ${#missing[@]} != 0 ]; then
    echo "install-tools: installed, but not found afterwards: ${missing[*]}" >&2
    exit 1
fi
