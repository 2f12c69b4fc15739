#!/usr/bin/env bash
# Records in hosts.txt which certificates ZooKeeper takes for which hosts. It needs what
# make.sh needs. A line "certificate N HEX" is followed by lines "N HOST true|false".
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jars=/usr/share/java
class_path=$jars/zookeeper.jar:$jars/zookeeper-jute.jar:$jars/slf4j-api.jar:$jars/slf4j-nop.jar:$work
javac -cp "$class_path" -d "$work" Hosts.java
n=0
certificate() { # SUBJECT [NAMES]
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -days 36500 -multivalue-rdn \
        -subj "$1" ${2:+-addext "subjectAltName=$2"} -outform DER -out "$work/$((n++)).crt" 2>/dev/null
}
certificate /CN=a.example.com
certificate /CN=ignored DNS:a.example.com,DNS:B.Example.COM
certificate /CN=a.example.com DNS:b.example.com
certificate /CN=a.example.com URI:https://a.example.com,email:me@example.com
certificate /CN=a.example.com IP:10.0.0.1
certificate /CN=x DNS:*.example.com
certificate /CN=x DNS:zk-*.example.com,DNS:*-zk.example.com
certificate /CN=x DNS:a.*.com,DNS:*
certificate /CN=x DNS:*.*.com
certificate /CN=x DNS:a*a
certificate /CN=x DNS:10.0.0.1
certificate /CN=x IP:10.0.0.1,IP:fe80::1,IP:2001:db8::a
certificate /CN=10.0.0.1
certificate /CN=*.example.com
certificate /CN=first.example.com/CN=second.example.com
certificate /CN=first.example.com/O=z
certificate /CN=first.example.com+CN=other.example.com
certificate /O=nobody
certificate /CN=fe80::1
certificate /CN=a.example.com DNS:a.example.com.
java -cp "$class_path" org.apache.zookeeper.common.Hosts "$work" $n >"$here/hosts.txt"
