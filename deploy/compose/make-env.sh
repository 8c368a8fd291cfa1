#!/bin/sh
# Writes deploy/.env, or the file that is named, with new secrets. A file that is there stays as it is.
set -eu
file=${1:-"$(dirname "$0")/../.env"}
if [ -e "$file" ]; then
    echo "$file is there already; nothing is changed" >&2
    exit 0
fi
hex() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
umask 077
unfinished="$file.$$"
cat > "$unfinished" <<EOF
# Secrets of this installation. Keep them: without ASTRAFLOW_SECRETS_KEY no stored secret can be read again.
POSTGRES_PASSWORD=$(hex 24)
S3_ACCESS_KEY=$(hex 10)
S3_SECRET_KEY=$(hex 24)
ASTRAFLOW_TOKEN=$(hex 24)
ASTRAFLOW_SECRET=$(hex 32)
ASTRAFLOW_SECRETS_KEY=$(head -c 32 /dev/urandom | base64)
GRAFANA_PASSWORD=$(hex 12)
EOF
mv "$unfinished" "$file"
echo "wrote $file" >&2
