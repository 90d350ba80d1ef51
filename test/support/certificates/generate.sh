#!/bin/sh
# Creates the certificates of the tests. They are committed, so that tests need no openssl; they protect nothing.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: > "$work/index.txt"
cat > "$work/ca.conf" <<CONF
[ca]
default_ca = test
[test]
database = $work/index.txt
new_certs_dir = $work
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
CONF

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

key authority
openssl req -x509 -new -key authority.key -days 36500 -subj '/CN=Posthorn test authority' -out authority.crt

# leaf <file> <names> <not before> <not after>
leaf() {
  key "$1"
  openssl req -new -key "$1.key" -subj "/CN=$1" -out "$work/$1.csr"
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$2" > "$work/$1.ext"
  openssl ca -batch -notext -config "$work/ca.conf" -cert authority.crt -keyfile authority.key \
    -in "$work/$1.csr" -extfile "$work/$1.ext" -startdate "$3" -enddate "$4" -out "$1.crt"
}

leaf valid 'DNS:receiver.test,DNS:localhost,IP:127.0.0.1,IP:::1' 20200101000000Z 21200101000000Z
leaf expired 'DNS:receiver.test,DNS:localhost,IP:127.0.0.1' 20200101000000Z 20210101000000Z
leaf other-name 'DNS:somewhere-else.test' 20200101000000Z 21200101000000Z

key self-signed
openssl req -x509 -new -key self-signed.key -days 36500 -subj '/CN=receiver.test' \
  -addext 'subjectAltName=DNS:receiver.test,DNS:localhost,IP:127.0.0.1' -out self-signed.crt

# Self-signed too. Receivers without elliptic curves need RSA.
openssl req -x509 -newkey rsa:2048 -nodes -keyout rsa.key -days 36500 -subj '/CN=receiver.test' \
  -addext 'subjectAltName=DNS:receiver.test,DNS:localhost,IP:127.0.0.1' -out rsa.crt

# Client certificates have an authority of their own, so that receivers can tell them from the others.
key client-authority
openssl req -x509 -new -key client-authority.key -days 36500 -subj '/CN=Posthorn test client authority' \
  -out client-authority.crt

# client <file> <not after>
client() {
  key "$1"
  openssl req -new -key "$1.key" -subj "/CN=$1" -out "$work/$1.csr"
  printf 'extendedKeyUsage=clientAuth\n' > "$work/$1.ext"
  openssl ca -batch -notext -config "$work/ca.conf" -cert client-authority.crt -keyfile client-authority.key \
    -in "$work/$1.csr" -extfile "$work/$1.ext" -startdate 20200101000000Z -enddate "$2" -out "$1.crt"
}

client client-one 21200101000000Z
client client-two 21200101000000Z
client client-expired 20210101000000Z
# More bits than Posthorn accepts.
openssl req -x509 -newkey rsa:4104 -nodes -keyout client-long.key -days 36500 -subj '/CN=client-long' -out client-long.crt
# Only this script signs with them, and it creates new ones each time.
rm authority.key client-authority.key
