"""Has the PyPI package dateparser find dates in the messages of the labelled corpus.

    python dates.py MESSAGES

MESSAGES is a file of JSON lines: {"id", "sent", "text"}, the author's own words and the `Date` field
with the sender's offset. For each line that has dates, one of {"id", "days"} is on standard output:
all days that `search_dates` finds, in English, counted from the message, in the future where a phrase
leaves that open. That is what the package is for; it does not tell what is asked for from what is not.
"""

import json
import sys
from datetime import datetime

from dateparser.search import search_dates


def days(text, sent):
    settings = {
        "RELATIVE_BASE": sent.replace(tzinfo=None),
        "PREFER_DATES_FROM": "future",
        "DATE_ORDER": "DMY",
    }
    found = search_dates(text, languages=["en"], settings=settings) or []
    return sorted({moment.date().isoformat() for _, moment in found})


def main():
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            message = json.loads(line)
            sent = datetime.fromisoformat(message["sent"])
            print(json.dumps({"id": message["id"], "days": days(message["text"], sent)}))


if __name__ == "__main__":
    main()
