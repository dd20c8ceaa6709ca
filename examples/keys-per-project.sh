#!/bin/sh
# Makes a key for each project folder and writes it to FOLDER/.env, so that `gateway usage --by key` shows what each project
# costs. A folder whose .env has a GATEWAY_KEY already is left alone.
#
#   keys-per-project.sh GROUP FOLDER...
#   keys-per-project.sh claude ~/code/shop ~/code/blog
set -eu

if [ "$#" -lt 2 ]; then
  echo "usage: keys-per-project.sh GROUP FOLDER..." >&2
  exit 2
fi
group=$1
shift

for folder in "$@"; do
  file="$folder/.env"
  if [ -f "$file" ] && grep -q '^GATEWAY_KEY=' "$file"; then
    echo "$folder: has a key already"
    continue
  fi
  name=$(basename "$folder")
  # stdout of `keys add` is the secret alone. It is shown once, and never again.
  secret=$(gateway keys add --name "$name" --group "$group")
  (umask 077 && touch "$file")
  printf 'GATEWAY_KEY=%s\n' "$secret" >>"$file"
  echo "$folder: key \"$name\" of group \"$group\", in $file"
done
echo "Keep the .env files out of version control. What a project cost: gateway usage --by key"
