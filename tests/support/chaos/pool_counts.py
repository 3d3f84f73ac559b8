"""Whether a statement counts the rows of a pool: what breaks other systems' dashboards."""
import re

COUNT = re.compile(r"\bCOUNT\s*[(\0]", re.IGNORECASE)
POOL = re.compile(r"\b(FROM|JOIN)\s+`?tasks(_\d+)?(_done|_failed|_all)?`?\b", re.IGNORECASE)
LIMIT = re.compile(r"\bLIMIT (\d+)\s*$", re.IGNORECASE)
FEW = 20_000  # so many rows are looked at in the place of a due map, at most: kMostNewRows


def counts_pool(text):
    """Each part of a UNION ALL by itself. To count among rows that a LIMIT has made few is not to count a pool."""
    folded = []  # what stood in brackets, from within to without

    def fold(match):
        inner, limit = match[1], LIMIT.search(match[1])
        folded.append("few" if limit and int(limit[1]) <= FEW and not COUNT.search(inner) else inner)
        return f"\0{len(folded) - 1}\0"

    def unfold(part):
        while "\0" in part:
            part = re.sub(r"\0(\d+)\0", lambda match: f"({folded[int(match[1])]})", part)
        return part

    while "(" in text and (shorter := re.sub(r"\(([^()]*)\)", fold, text)) != text:
        text = shorter
    parts = map(unfold, re.split(r"\bUNION ALL\b", text, flags=re.IGNORECASE))
    return any(COUNT.search(part) and POOL.search(part) for part in parts)
