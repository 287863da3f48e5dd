"""The site commands: a person's word about a site that has an agent."""

from __future__ import annotations

import time

from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import find_server, path_part
from wattline.plane.finding import open_view
from wattline.plane.session import user
from wattline.plane.site_words import ask_of_site, describe_word, say_word, site_asked
from wattline.plane.told import SiteWord


def say_of_site(site: str, want: str, *, as_json: bool) -> int:
    server = find_server()
    if server is not None:
        path = f"/api/v1/sites/{path_part('site', site)}/{want.replace('_', '-')}"
        told, heard = server.post(path, {}, SiteWord), True
    else:
        with open_view() as view:
            record = ask_of_site(view.state, site, want)
            view.session.tell(site_asked(site, want, at=time.time(), actor=user()))
            told, heard = describe_word(record, want), view.writer is not None
    if as_json:
        print_json(told)
        return 0
    console = stdout_console()
    console.print(plain(say_word(told)))
    if not heard:
        console.print("nobody conducts now; it counts once a server does", style="dim")
    return 0
