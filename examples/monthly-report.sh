#!/bin/sh
# Verifies the ledger, then writes the costs of a month as CSV files: by key, by model and by day. Amounts are exact.
#
#   monthly-report.sh 2026-11 [FOLDER]
set -eu

month=${1:-}
folder=${2:-.}
case $month in
  [0-9][0-9][0-9][0-9]-0[1-9] | [0-9][0-9][0-9][0-9]-1[0-2]) ;;
  *)
    echo "usage: monthly-report.sh YEAR-MONTH [FOLDER], such as 2026-11" >&2
    exit 2
    ;;
esac

year=${month%-*}
case ${month#*-} in
  04 | 06 | 09 | 11) last=30 ;;
  02) if [ $((year % 4)) -eq 0 ] && { [ $((year % 100)) -ne 0 ] || [ $((year % 400)) -eq 0 ]; }; then last=29; else last=28; fi ;;
  *) last=31 ;;
esac

# A damaged ledger must not become a report: verify exits with 1 and says what is wrong.
gateway ledger verify >&2

mkdir -p "$folder"
for what in key model day; do
  file="$folder/usage-$month-by-$what.csv"
  gateway usage --by "$what" --since "$month-01" --until "$month-$last" --csv >"$file"
  echo "$file"
done
