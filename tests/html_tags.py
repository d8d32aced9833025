"""HTML as a browser would see it, without one."""

from html.parser import HTMLParser


class Tags(HTMLParser):
    """The tags and attributes that a browser would see, and the text."""

    def __init__(self, source):
        super().__init__()
        self.names, self.attributes, self.text = set(), set(), ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data
