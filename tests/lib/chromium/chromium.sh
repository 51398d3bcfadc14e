#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Chromium without its question whether a page may reach this machine: nobody is there to answer, and
# icons of pages are asked about though their pages are of this machine, too. Of two lists of
# features it takes the last alone, and Playwright gives one.
for word; do
    shift
    case $word in
        --disable-features=*) word=$word,LocalNetworkAccessChecks ;;
    esac
    set -- "$@" "$word"
done
exec chromium "$@"
