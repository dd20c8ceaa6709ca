#!/bin/sh
# Shows that another channel answers when one is off: turns the channel off, sends one request, prints which channel served
# it, and turns the channel on again. For a group of the messages platform. The request costs a few tokens.
#
#   GATEWAY_KEY=sk-… failover-test.sh CHANNEL MODEL [URL]
#   GATEWAY_KEY=sk-… failover-test.sh anthropic-main claude-haiku-4-5
set -eu

if [ "$#" -lt 2 ] || [ -z "${GATEWAY_KEY:-}" ]; then
  echo "usage: GATEWAY_KEY=sk-… failover-test.sh CHANNEL MODEL [URL]" >&2
  exit 2
fi
channel=$1
model=$2
url=${3:-http://127.0.0.1:4141}

headers=$(mktemp)
trap 'rm -f "$headers"; gateway channels enable "$channel" >/dev/null' EXIT
gateway channels disable "$channel" >/dev/null

# The key goes through stdin, so that it is not in the list of processes.
body="{\"model\":\"$model\",\"max_tokens\":16,\"messages\":[{\"role\":\"user\",\"content\":\"Say hello\"}]}"
status=$(printf 'header = "x-api-key: %s"\n' "$GATEWAY_KEY" |
  curl --silent --config - --dump-header "$headers" --output /dev/null --write-out '%{http_code}' \
    --header 'content-type: application/json' --data "$body" "$url/v1/messages")

# Each answer carries the id of its ledger line.
id=$(tr -d '\r' <"$headers" | sed -n 's/^x-request-id: //p')
if [ "$status" != 200 ]; then
  echo "no other channel answered: status $status, request $id" >&2
  exit 1
fi
# The answer comes before its ledger line: ask again for a moment.
left=50
until line=$(gateway ledger show "$id" --json 2>/dev/null); do
  left=$((left - 1))
  [ "$left" -gt 0 ] || { echo "request $id has no ledger line" >&2; exit 1; }
  sleep 0.1
done
served=$(printf '%s' "$line" | tr ',' '\n' | sed -n 's/.*"channel": *"\([^"]*\)".*/\1/p' | head -n 1)
echo "with \"$channel\" off, \"$served\" answered (request $id)"
