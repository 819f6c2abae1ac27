"""`manage.py check_counters`: every budget counter in Redis beside the ledger."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from apps.billing.counters import counter_mend, counters_checked
from apps.core.money import plain


class Command(BaseCommand):
    """Ends with status 1 when a counter is wrong and was not mended."""

    help = "Compare the budget counters in Redis with the ledger."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="correct those that are wrong")

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = 0
        for check in counters_checked():
            told = ", ".join(f"{name} {plain(it)}" for name, it in check.amounts.items())
            verdict = "right" if check.is_right else "wrong"
            if not check.is_right and options["repair"]:
                counter_mend(check)
                verdict = "mended"
            wrong += verdict == "wrong"
            self.stdout.write(f"{verdict}: {check.budget} since {check.since:%F %T}: {told}")
        if wrong:
            self.stderr.write("run it with --repair to correct them")
            raise SystemExit(1)
