#!/bin/sh
# Compares the gateway's amounts with those of your provider. It makes a dozen different requests through your running
# gateway, with your own account, and prints what the ledger has for each. You compare that with the provider's usage page.
# It costs a few cents, and never more than one dollar: its key has a limit, and is removed at the end.
#
#   check-against-provider.sh GROUP MODEL [URL] [--yes]
#   check-against-provider.sh claude claude-haiku-4-5
set -eu

fail() {
  echo "$1" >&2
  exit "${2:-1}"
}

yes=
if [ "${4:-}" = --yes ] || [ "${3:-}" = --yes ]; then yes=1; fi
if [ "$#" -lt 2 ]; then fail "usage: check-against-provider.sh GROUP MODEL [URL] [--yes]" 2; fi
group=$1
model=$2
url=http://127.0.0.1:4141
if [ -n "${3:-}" ] && [ "$3" != --yes ]; then url=$3; fi

echo "This sends about a dozen small requests to the group \"$group\" with $model, at your own cost: a few cents for most" >&2
echo "models, and at most one dollar. Nothing else of your account should use $model until it is done." >&2
if [ -z "$yes" ]; then
  if ! [ -t 0 ]; then fail "Nothing was sent. Run it in a terminal, or add --yes." 2; fi
  printf 'Go on? [y/N] ' >&2
  read -r answer
  case $answer in y | Y | yes) ;; *) fail "Nothing was sent." 2 ;; esac
fi

folder=$(mktemp -d)
name=check-$(date -u +%Y%m%d-%H%M%S)-$$
trap 'rm -rf "$folder"; gateway keys remove "$name" --yes >/dev/null 2>&1 || true' EXIT
trap 'exit 130' INT TERM
# The first member of this name in a JSON text.
text_of() { printf '%s' "$1" | tr -d '\n' | grep -o "\"$2\": *\"[^\"]*\"" | head -n 1 | sed 's/^[^:]*: *"//; s/"$//'; }
number_of() { printf '%s' "$1" | tr -d '\n' | grep -o "\"$2\": *[0-9][0-9]*" | head -n 1 | sed 's/.*: *//'; }

terms=$(gateway groups list --all --json | grep -o '"name":"[^"]*","platform":"[^"]*","multiplier":"[^"]*"' |
  grep -F "\"name\":\"$group\",") || fail "The config has no group \"$group\"."
platform=$(text_of "$terms" platform)
# Limits count charges, which have the group's multiplier. The provider's price stays below a dollar: the last request may
# exceed the limit by some cents.
limit=$(text_of "$terms" multiplier | awk '{ printf "%.9f", 0.9 * $1 }')
case $limit in *[1-9]*) ;; *) fail "The group's multiplier is too small: no limit could stop this." ;; esac
made=$(gateway keys add --name "$name" --group "$group" --limit "usd_total=$limit" --json)
# The secret goes through a file of mode 0600, so that it is not in the list of processes.
umask 077
secret=$(text_of "$made" secret)
case $platform in
  messages) printf 'header = "x-api-key: %s"\nheader = "anthropic-version: 2023-06-01"\n' "$secret" ;;
  responses) printf 'header = "authorization: Bearer %s"\n' "$secret" ;;
  content) printf 'header = "x-goog-api-key: %s"\n' "$secret" ;;
  *) fail "The group \"$group\" is of the platform \"$platform\". Use a group of messages, responses or content." ;;
esac >"$folder/curl"

# The gateway reads its config again within a second.
left=50
until [ "$(curl --silent --config "$folder/curl" --output /dev/null --write-out '%{http_code}' "$url/v1/models/none")" != 401 ]; do
  left=$((left - 1))
  [ "$left" -gt 0 ] || fail "No gateway at $url knows the new key. Is it running, with this config?"
  sleep 0.1
done

rows=$folder/rows
count=0
stopped=
started=$(date -u +%Y-%m-%dT%H:%M:%SZ)

# A row for the request whose headers are in the folder. The answer comes before its ledger line.
record() {
  id=$(tr -d '\r' <"$folder/headers" | sed -n 's/^[Xx]-[Rr]equest-[Ii]d: //p' | tail -n 1)
  status=$(sed -n 's/^HTTP[^ ]* \([0-9]*\).*/\1/p' "$folder/headers" | tail -n 1)
  count=$((count + 1))
  line=
  if [ "$2" = billed ]; then
    # An error usually costs nothing and has no line.
    left=100
    case ${status:-000} in 4*) left=5 ;; esac
    until line=$(gateway ledger show "$id" --json 2>/dev/null); do
      left=$((left - 1))
      [ "$left" -gt 0 ] || break
      sleep 0.1
    done
  fi
  if [ -z "$line" ]; then
    case ${status:-000} in
      401 | 403 | 429)
        stopped=1
        echo "Stopped: \"$1\" got status $status: $(head -c 1000 "$folder/body")" >&2
        ;;
    esac
    printf '%s\t%s\t%s\t%s\t-\t-\t-\t-\t-\tno ledger line\t-\n' "$count" "$1" "${status:--}" "${id:--}" >>"$rows"
    return
  fi
  usage=$(printf '%s' "$line" | tr -d '\n' | sed 's/.*"usage": *\({[^}]*}\).*"raw_usage".*/\1/; s/.*"parts".*//')
  [ -n "$usage" ] || usage=$line
  written=0
  for kind in cache_write cache_write_5m cache_write_1h cache_write_12h; do
    tokens=$(number_of "$usage" "$kind")
    written=$((written + ${tokens:-0}))
  done
  input=$(number_of "$usage" input)
  read=$(number_of "$usage" cache_read)
  output=$(number_of "$usage" output)
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$count" "$1" "$status" "$id" "${input:-0}" "${read:-0}" \
    "$written" "${output:-0}" "$(text_of "$line" official_usd || true)" "$(text_of "$line" basis)" \
    "$(text_of "$line" upstream_request_id || true)" >>"$rows"
}

# send NAME PATH BODY [free]
send() {
  [ -z "$stopped" ] || return 0
  printf '%s' "$3" >"$folder/request"
  curl --silent --config "$folder/curl" --max-time 300 --dump-header "$folder/headers" --output "$folder/body" \
    --header 'content-type: application/json' --data-binary @"$folder/request" "$url$2" || true
  record "$1" "${4:-billed}"
}

# Reads the beginning of a stream, then closes the connection.
leave() {
  [ -z "$stopped" ] || return 0
  printf '%s' "$3" >"$folder/request"
  curl --silent --no-buffer --config "$folder/curl" --max-time 300 --dump-header "$folder/headers" \
    --header 'content-type: application/json' --data-binary @"$folder/request" "$url$2" 2>/dev/null |
    head -c 600 >"$folder/body" || true
  record "$1" billed
}

# About 6,000 tokens that no cache knows.
long="Check $name."
sentence="The quick brown fox jumps over the lazy dog while the gateway counts every single token of this text."
index=0
while [ "$index" -lt 280 ]; do
  index=$((index + 1))
  long="$long $index. $sentence"
done

check_messages() {
  path=/v1/messages
  ask='"messages":[{"role":"user","content":"Name three colours."}]'
  tool='"tools":[{"name":"weather","description":"The weather of a city","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}],"tool_choice":{"type":"tool","name":"weather"},"messages":[{"role":"user","content":"Weather in Oslo?"}]'
  cached='"system":[{"type":"text","text":"'$long'","cache_control":{"type":"ephemeral"}}],'$ask
  story='"messages":[{"role":"user","content":"Write a story of 300 words."}]'
  head='"model":"'$model'","max_tokens":'
  send "plain" $path "{$head 100,$ask}"
  send "streamed" $path "{$head 100,\"stream\":true,$ask}"
  send "cache written" $path "{$head 50,$cached}"
  send "cache read" $path "{$head 50,$cached}"
  send "cache read, streamed" $path "{$head 50,\"stream\":true,$cached}"
  send "tool" $path "{$head 200,$tool}"
  send "tool, streamed" $path "{$head 200,\"stream\":true,$tool}"
  send "cut at max_tokens" $path "{$head 16,$story}"
  send "stop sequence" $path "{$head 100,\"stop_sequences\":[\"a\"],$story}"
  send "several turns" $path "{$head 100,\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"assistant\",\"content\":\"Hello!\"},{\"role\":\"user\",\"content\":\"Name a colour.\"}]}"
  leave "left early" $path "{$head 800,\"stream\":true,$story}"
  send "tokens counted" $path/count_tokens "{\"model\":\"$model\",$ask}" free
  send "refused" $path "{$head 16,\"messages\":[]}"
}

check_responses() {
  path=/v1/responses
  chat=/v1/chat/completions
  head='"model":"'$model'","store":false,"max_output_tokens":'
  ask='"input":"Name three colours."'
  tool='"tools":[{"type":"function","name":"weather","strict":false,"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}],"tool_choice":"required","input":"Weather in Oslo?"'
  cached='"instructions":"'$long'",'$ask
  story='"input":"Write a story of 300 words."'
  messages='"messages":[{"role":"user","content":"Name three colours."}]'
  send "plain" $path "{$head 300,$ask}"
  send "streamed" $path "{$head 300,\"stream\":true,$ask}"
  send "long prompt" $path "{$head 300,$cached}"
  send "the same again" $path "{$head 300,$cached}"
  send "again, streamed" $path "{$head 300,\"stream\":true,$cached}"
  send "tool" $path "{$head 400,$tool}"
  send "tool, streamed" $path "{$head 400,\"stream\":true,$tool}"
  send "cut at the cap" $path "{$head 16,$story}"
  send "chat completion" $chat "{\"model\":\"$model\",\"max_completion_tokens\":300,$messages}"
  send "chat, streamed" $chat "{\"model\":\"$model\",\"max_completion_tokens\":300,\"stream\":true,\"stream_options\":{\"include_usage\":true},$messages}"
  leave "left early" $path "{$head 1500,\"stream\":true,$story}"
  send "tokens counted" $path/input_tokens "{\"model\":\"$model\",$ask}" free
  send "refused" $path "{$head -1,$ask}"
}

check_content() {
  path=/v1beta/models/$model
  say() { printf '"contents":[{"role":"user","parts":[{"text":"%s"}]}]' "$1"; }
  cap() { printf '"generationConfig":{"maxOutputTokens":%s}' "$1"; }
  ask=$(say "Name three colours.")
  story=$(say "Write a story of 300 words.")
  cached='"systemInstruction":{"parts":[{"text":"'$long'"}]},'$ask
  tool='"tools":[{"functionDeclarations":[{"name":"weather","parameters":{"type":"OBJECT","properties":{"city":{"type":"STRING"}}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},'$(say "Weather in Oslo?")
  send "plain" "$path:generateContent" "{$ask,$(cap 500)}"
  send "streamed" "$path:streamGenerateContent?alt=sse" "{$ask,$(cap 500)}"
  send "streamed as a list" "$path:streamGenerateContent" "{$ask,$(cap 500)}"
  send "long prompt" "$path:generateContent" "{$cached,$(cap 500)}"
  send "the same again" "$path:generateContent" "{$cached,$(cap 500)}"
  send "again, streamed" "$path:streamGenerateContent?alt=sse" "{$cached,$(cap 500)}"
  send "tool" "$path:generateContent" "{$tool,$(cap 500)}"
  send "tool, streamed" "$path:streamGenerateContent?alt=sse" "{$tool,$(cap 500)}"
  send "cut at the cap" "$path:generateContent" "{$story,$(cap 16)}"
  send "several turns" "$path:generateContent" "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"Hello\"}]},{\"role\":\"model\",\"parts\":[{\"text\":\"Hello!\"}]},{\"role\":\"user\",\"parts\":[{\"text\":\"Name a colour.\"}]}],$(cap 500)}"
  leave "left early" "$path:streamGenerateContent?alt=sse" "{$story,$(cap 1500)}"
  send "tokens counted" "$path:countTokens" "{$ask}" free
  send "refused" "$path:generateContent" "{\"contents\":[],$(cap 500)}"
}

case $platform in
  messages) check_messages ;;
  responses) check_responses ;;
  content) check_content ;;
esac
ended=$(date -u +%Y-%m-%dT%H:%M:%SZ)

echo "Requests of the key \"$name\" to $model, $started to $ended (UTC)"
echo
{
  printf '#\tREQUEST\tSTATUS\tID\tINPUT\tCACHE READ\tCACHE WRITE\tOUTPUT\tOFFICIAL $\tBASIS\tID AT THE PROVIDER\n'
  cat "$rows"
} | awk -F '\t' '{
    for (i = 1; i <= NF; i++) { cell[NR, i] = $i; if (length($i) > wide[i]) wide[i] = length($i) }
  } END {
    for (row = 1; row <= NR; row++) {
      text = ""
      for (i = 1; i <= 11; i++) {
        value = cell[row, i]
        right = (i == 1 || (i >= 5 && i <= 9))
        pad = sprintf("%" (wide[i] - length(value)) "s", "")
        text = text (right ? pad value : value pad) "  "
      }
      sub(/ +$/, "", text)
      print text
    }
  }'
echo
echo "The gateway's sums (OFFICIAL \$ is what the provider charges; CHARGED \$ has your group's multiplier):"
gateway usage --key "$name" --by model
[ -z "$stopped" ] || fail "It was stopped before its end."
echo
case $platform in
  messages) echo "Compare with https://platform.claude.com/usage and https://platform.claude.com/cost" ;;
  responses) echo "Compare with https://platform.openai.com/usage" ;;
  content) echo "Compare with https://aistudio.google.com/usage, or the billing reports of your Google Cloud project" ;;
esac
cat <<'END'
 1. Choose this model, this key or project, and the minutes above. Usage pages can be late by some minutes, costs by a day.
 2. Input, cache reads, cache writes and output each have to be the same as the sums of the columns above. Some pages
    count cache reads and writes as a part of the input: then add the columns.
 3. The costs have to be the same as OFFICIAL $, but for the rounding of the page.
 4. Rows with the basis "exact" have to agree to the token. "left early" is "partial" or "unknown": the provider charges
    what it wrote until it noticed, and the gateway estimates it from what arrived, unless that was all. "tokens counted" and "refused" cost
    nothing and have no line, or one of $0.
If something differs, please open an issue with this output, what the page shows, and for each row that differs the output
of `gateway ledger show ID --json`. None of them contains a secret, a prompt or an answer.
END
