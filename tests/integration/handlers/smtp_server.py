"""An SMTP server on a free port for send_mail's tests. Prints its port, then one JSON line per mail accepted."""
import asyncio
import json

from aiosmtpd.smtp import SMTP


class Mailbox:
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
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos, "text": text}), flush=True)
        return "250 OK"


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Mailbox(), hostname="test"), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
