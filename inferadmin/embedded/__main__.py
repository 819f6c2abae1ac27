"""`python -m inferadmin.embedded`: see `supervisor`."""

import sys

from inferadmin.embedded.supervisor import main

sys.exit(main())
