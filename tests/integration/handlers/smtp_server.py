"""An SMTP server on a free port for send_mail's tests. Prints its port, then one JSON line per mail accepted.

Usage: smtp_server.py [--security none|starttls|tls --certificate FILE --key FILE --login USER:PASSWORD]
                      [--silent-at-quit] [--greeting REPLY] [--strange-login]
With a login nobody sends a mail without it; with TLS, nobody without TLS. A silent one never answers QUIT. The greeting
stands for the usual 220. A strange login is offered, and of no known kind.
"""
import argparse
import asyncio
import json
import ssl

from aiosmtpd.smtp import SMTP, AuthResult


class Server(SMTP):
    def __init__(self, mailbox, greeting, **options):
        super().__init__(mailbox, **options)
        self.greeting = greeting

    async def push(self, status):
        await super().push(self.greeting or status)
        self.greeting = None  # it is said first, and once


class Mailbox:
    def __init__(self, silent):
        self.silent = silent

    async def handle_QUIT(self, server, session, envelope):
        if self.silent:
            await asyncio.Event().wait()
        return "221 Bye"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 no such mailbox here"
        if address.startswith("busy@"):
            return "451 try again later"
        if address.startswith("login@"):
            return "530 authentication required"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        text = envelope.content.decode()
        if "Subject: spam" in text:
            return "554 refused as spam"
        encrypted = server.transport.get_extra_info("ssl_object") is not None
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos, "text": text,
                          "authenticated": session.authenticated, "encrypted": encrypted}), flush=True)
        return "250 OK"


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--security", choices=("none", "starttls", "tls"), default="none")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--login")
    parser.add_argument("--silent-at-quit", action="store_true")
    parser.add_argument("--greeting")
    parser.add_argument("--strange-login", action="store_true")
    return parser.parse_args()


def options_of(arguments, context):
    options = {"hostname": "test"}
    if arguments.security == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    if arguments.login:
        def check(server, session, envelope, mechanism, given):
            given = f"{given.login.decode()}:{given.password.decode()}"
            return AuthResult(success=given == arguments.login, handled=False)
        # Of a connection that began with TLS the library does not know that it is encrypted.
        options |= {"authenticator": check, "auth_required": True,
                    "auth_require_tls": arguments.security != "tls"}
    if arguments.strange_login:
        options |= {"auth_require_tls": False, "auth_exclude_mechanism": ("LOGIN", "PLAIN")}
    return options


async def main(arguments):
    context = None
    if arguments.security != "none":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(arguments.certificate, arguments.key)
    options = options_of(arguments, context)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Server(Mailbox(arguments.silent_at_quit), arguments.greeting, **options), "127.0.0.1", 0,
        ssl=context if arguments.security == "tls" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main(read_arguments()))
