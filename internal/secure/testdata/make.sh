#!/usr/bin/env bash
# Makes the key and trust stores of the tests anew, in testdata/stores, and records in
# java.txt what ZooKeeper on this Java says of each. It needs openssl, keytool, javac and
# ZooKeeper's jar (Debian's packages openssl, default-jdk-headless, libzookeeper-java).
# The unit tests need none of them: they read the recorded files.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")"
here=$PWD
rm -rf stores && mkdir stores && cd stores
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
days=36500 # no test depends on the date
quiet() { "$@" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; echo "failed: $*" >&2; exit 1; }; }
legacy() { quiet openssl "$@" -provider legacy -provider default; }
key() { quiet openssl genpkey -out "$work/$1.key" -algorithm "${@:2}"; }
# issue NAME SUBJECT [openssl options]: a certificate for $work/NAME.key by the authority.
issue() {
    quiet openssl req -new -key "$work/$1.key" -subj "$2" -out "$work/$1.csr"
    printf 'basicConstraints=CA:FALSE\nsubjectAltName=DNS:%s,IP:127.0.0.1\n' "$1.example.com" >"$work/$1.ext"
    quiet openssl x509 -req -in "$work/$1.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -CAcreateserial \
        -extfile "$work/$1.ext" -out "$work/$1.crt" "${@:3}"
}

# The authority, and certificates of each kind of key.
key ca EC -pkeyopt ec_paramgen_curve:P-256
quiet openssl req -x509 -key "$work/ca.key" -subj "/O=Bellwether/CN=Test CA" -days $days -out "$work/ca.crt"
key rsa RSA -pkeyopt rsa_keygen_bits:2048
key ec EC -pkeyopt ec_paramgen_curve:P-256
key ed ED25519
quiet openssl dsaparam -genkey -out "$work/dsa1.key" 1024
quiet openssl pkcs8 -topk8 -nocrypt -in "$work/dsa1.key" -out "$work/dsa.key"
issue rsa "/O=Bellwether/CN=rsa" -days $days
issue ec "/O=Bellwether/CN=ec" -days $days
issue ed "/O=Bellwether/CN=ed" -days $days
issue dsa "/O=Bellwether/CN=dsa" -days $days

# PEM: key and chain in one file.
cp "$work/ca.crt" ca.pem
for k in rsa ec ed dsa; do cat "$work/$k.key" "$work/$k.crt" "$work/ca.crt" >$k.pem; done
{ quiet openssl rsa -in "$work/rsa.key" -traditional -out "$work/rsa1.key"; cat "$work/rsa.crt" "$work/rsa1.key"; } >rsa-pkcs1.pem
openssl ecparam -name prime256v1 >"$work/params"
{ quiet openssl ec -in "$work/ec.key" -out "$work/ec1.key"; cat "$work/params" "$work/ec1.key" "$work/ec.crt"; } >ec-sec1.pem
cat "$work/rsa.crt" "$work/ca.crt" >no-key.pem
quiet openssl x509 -in "$work/ca.crt" -trustout -addtrust serverAuth -setalias ca -out trusted.pem
cat "$work/rsa.key" >no-certificate.pem
cat "$work/rsa.key" "$work/ec.crt" >other-key.pem
cat "$work/rsa.key" "$work/ca.crt" "$work/rsa.crt" >authority-first.pem
: >empty.pem
head -c 900 rsa.pem >cut.pem
{ echo "Bag Attributes"; openssl x509 -in "$work/rsa.crt" -text; cat "$work/rsa.key"; echo "the end"; } >text.pem
encrypted() { cat "$work/$1.enc" "$work/$1.crt" "$work/ca.crt"; }
legacy pkcs8 -topk8 -in "$work/rsa.key" -v1 PBE-SHA1-3DES -passout pass:changeit -out "$work/rsa.enc"; encrypted rsa >encrypted-3des.pem
legacy pkcs8 -topk8 -in "$work/rsa.key" -v1 PBE-SHA1-RC2-40 -passout pass:changeit -out "$work/rsa.enc"; encrypted rsa >encrypted-rc2.pem
legacy pkcs8 -topk8 -in "$work/ec.key" -v1 PBE-SHA1-RC2-128 -passout pass:changeit -out "$work/ec.enc"; encrypted ec >encrypted-rc2-128.pem
legacy pkcs8 -topk8 -in "$work/rsa.key" -v1 PBE-MD5-DES -passout pass:changeit -out "$work/rsa.enc"; encrypted rsa >encrypted-md5.pem
legacy pkcs8 -topk8 -in "$work/rsa.key" -v2 aes-256-cbc -passout pass:changeit -out "$work/rsa.enc"; encrypted rsa >encrypted-aes256.pem
legacy pkcs8 -topk8 -in "$work/ec.key" -v2 aes-128-cbc -v2prf hmacWithSHA1 -passout pass:changeit -out "$work/ec.enc"; encrypted ec >encrypted-aes128.pem
legacy pkcs8 -topk8 -in "$work/ec.key" -v2 des3 -passout pass:changeit -out "$work/ec.enc"; encrypted ec >encrypted-des3.pem
legacy pkcs8 -topk8 -in "$work/ec.key" -scrypt -passout pass:changeit -out "$work/ec.enc"; encrypted ec >encrypted-scrypt.pem
legacy pkcs8 -topk8 -in "$work/ec.key" -v2 aes-128-cbc -iter 1 -passout pass:changeit -out "$work/ec.enc"; encrypted ec >encrypted-fast.pem
quiet openssl rsa -aes128 -traditional -in "$work/rsa.key" -passout pass:changeit -out "$work/rsa.enc"; encrypted rsa >encrypted-pkcs1.pem

# PKCS#12, by openssl and by keytool.
bundle() { openssl pkcs12 -export -inkey "$work/$1.key" -in "$work/$1.crt" -certfile "$work/ca.crt" -name "$1" "${@:2}"; }
bundle rsa -passout pass:changeit -out rsa.p12
bundle ec -passout pass:changeit -out ec.p12
bundle rsa -legacy -passout pass:changeit -out rsa-legacy.p12
bundle ec -iter 1 -maciter -passout pass:changeit -out fast.p12 # for fuzzing
bundle ec -iter 1 -nomac -legacy -passout pass:changeit -out fast-legacy.p12
bundle rsa -passout pass: -out no-password.p12
bundle rsa -nomac -passout pass:changeit -out no-mac.p12
bundle rsa -keypbe NONE -certpbe NONE -nomac -passout pass: -out plain.p12
bundle rsa -passout 'pass:pässwörd' -out accents.p12
bundle dsa -passout pass:changeit -out dsa.p12
bundle ed -passout pass:changeit -out ed.p12
quiet openssl pkcs12 -export -nokeys -in "$work/ca.crt" -passout pass:changeit -out trust-openssl.p12
quiet openssl pkcs12 -export -nocerts -inkey "$work/rsa.key" -passout pass:changeit -out only-key.p12
head -c 1500 rsa.p12 >cut.p12
: >empty.p12
import() { quiet keytool -importkeystore -noprompt -srckeystore "$1" -srcstoretype PKCS12 -srcstorepass changeit -deststorepass changeit "${@:2}"; }
trust() { quiet keytool -importcert -noprompt -alias "$1" -file "$work/ca.crt" -storepass changeit "${@:2}"; }
import rsa.p12 -destkeystore java.p12 -deststoretype PKCS12
import rsa.p12 -destkeystore java8.p12 -deststoretype PKCS12 -J-Dkeystore.pkcs12.legacy
trust authority -keystore trust.p12 -storetype PKCS12
for f in several.p12 several.jks; do
    type=$([ "${f##*.}" = p12 ] && echo PKCS12 || echo JKS)
    trust authority -keystore $f -storetype $type
    import rsa.p12 -destkeystore $f -deststoretype $type
    import ec.p12 -destkeystore $f -deststoretype $type
done

# JKS.
import rsa.p12 -destkeystore rsa.jks -deststoretype JKS
import ec.p12 -destkeystore ec.jks -deststoretype JKS
import dsa.p12 -destkeystore dsa.jks -deststoretype JKS
trust authority -keystore trust.jks -storetype JKS
cp java.p12 pkcs12-in.jks
cp rsa.jks jks-in.p12
cp rsa.jks entry-password.jks
quiet keytool -keypasswd -alias rsa -keystore entry-password.jks -storepass changeit -keypass changeit -new different
cp rsa.jks accents.jks
quiet keytool -storepasswd -keystore accents.jks -storepass changeit -new 'pässwörd€'
quiet keytool -keypasswd -alias rsa -keystore accents.jks -storepass 'pässwörd€' -keypass changeit -new 'pässwörd€'
cp trust.jks empty.jks
quiet keytool -delete -alias authority -keystore empty.jks -storepass changeit
quiet keytool -importkeystore -noprompt -srckeystore rsa.jks -srcstorepass changeit -destkeystore jceks.jks -deststoretype JCEKS -deststorepass changeit
quiet keytool -genkeypair -alias expired -keyalg EC -groupname secp256r1 -dname "CN=expired" -startdate 2001/01/01 -validity 30 \
    -keystore expired.jks -storetype JKS -storepass changeit -keypass changeit
head -c 1000 rsa.jks >cut.jks
printf 'changeit\n' >password
printf 'changeit\r\n' >password-crlf

# What ZooKeeper says of each file, as key store and as trust store.
jars=/usr/share/java
class_path=$jars/zookeeper.jar:$jars/zookeeper-jute.jar:$jars/slf4j-api.jar:$jars/slf4j-nop.jar:$work
javac -cp "$class_path" -d "$work" "$here/Stores.java"
java -cp "$class_path" -Dfile.encoding=UTF-8 Stores . >java.txt
