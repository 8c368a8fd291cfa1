#!/bin/sh
# Makes the tokens of the workers and of Prometheus in the folder that is named, unless they are there.
# ASTRA_SERVER and ASTRA_TOKEN say where, and who makes them.
set -eu
folder=$1
make() { # FILE MODE ROLE
    [ -s "$folder/$1" ] && return
    umask 077
    astra tokens create --role "$3" --ttl never --label "$1 of compose" > "$folder/.$1"
    chmod "$2" "$folder/.$1"
    mv "$folder/.$1" "$folder/$1"
}
make worker 0600 worker
make metrics 0644 metrics
