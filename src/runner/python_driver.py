# SPDX-License-Identifier: Apache-2.0
# Runs code for the executor (interpreter.h), in one namespace. Python 3.6 and later.
def _aliquot():
    import ast, base64, builtins, importlib.abc, importlib.machinery, io, json, linecache
    import os, signal, sys, traceback

    _, send, write, suggest, receive = _aliquot_link()
    main = sys.modules["__main__"].__dict__
    for name in ("_aliquot", "_aliquot_link"):
        main.pop(name, None)
    main["__name__"] = "__main__"
    own, count = os.getpid(), 0

    class Output(io.RawIOBase):
        def __init__(self, kind, number):
            self.kind, self.number = kind, number

        def writable(self):
            return True

        def fileno(self):
            return self.number

        def write(self, data):
            write(self.kind, bytes(data))
            return len(data)

    def stream(kind, number):
        return io.TextIOWrapper(io.BufferedWriter(Output(kind, number), 65536), encoding="utf-8",
                                errors="backslashreplace", line_buffering=True)

    def flush():
        for out in (sys.stdout, sys.stderr):
            try:
                out.flush()
            except Exception:
                pass

    def ask(prompt="", password=False):
        if os.getpid() != own:
            raise EOFError("only the process that runs the code can ask for input")
        sys.stdout.write(str(prompt))
        flush()
        send(b"w", b"1" if password else b"0")
        return receive()[1].decode("utf-8", "replace")

    class Input(io.TextIOBase):
        def readable(self):
            return True

        def readline(self, size=-1):
            return ask() + "\n"

    class Display:
        forms = (("_repr_svg_", "image/svg+xml"), ("_repr_jpeg_", "image/jpeg"),
                 ("_repr_png_", "image/png"), ("_repr_html_", "text/html"))

        def media(self, mime, data):
            if isinstance(data, bytes):
                data = "data:%s;base64,%s" % (mime, base64.b64encode(data).decode())
            send(b"m", mime.encode() + b"\0" + str(data).encode("utf-8", "replace"))

        def __call__(self, value):
            if value is None:
                return
            builtins._ = value
            for name, mime in self.forms:
                make = None if isinstance(value, type) else getattr(value, name, None)
                data = make() if callable(make) else None
                if isinstance(data, tuple):
                    data = data[0]
                if data is not None:
                    flush()
                    self.media(mime, data)
                    return
            print(repr(value))

        def figures(self, *args, **kwargs):
            plots = sys.modules.get("matplotlib.pyplot")
            for number in plots.get_fignums() if plots else ():
                data = io.BytesIO()
                plots.figure(number).savefig(data, format="png", bbox_inches="tight")
                plots.close(number)
                flush()
                self.media("image/png", data.getvalue())

    class Plots(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        name = "aliquot_plots"

        def find_spec(self, name, path=None, target=None):
            return importlib.machinery.ModuleSpec(name, self) if name == self.name else None

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            from matplotlib.backends import backend_agg
            module.__dict__.update({k: v for k, v in vars(backend_agg).items() if k[:2] != "__"})
            module.FigureCanvas = backend_agg.FigureCanvasAgg
            module.show = display.figures

    def tell():
        kind, value, trace = sys.exc_info()
        while trace and not trace.tb_frame.f_code.co_filename.startswith("<code "):
            trace = trace.tb_next
        traceback.print_exception(kind, value, trace)

    def run(code):
        nonlocal count
        count += 1
        name = "<code %d>" % count
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), main)
        if last is not None:
            display(eval(compile(ast.Expression(last.value), name, "eval"), main))
        display.figures()

    def guarded(code):
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            run(code.decode("utf-8", "replace"))
            return 0
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                return (end.code or 0) & 255
            print(end.code, file=sys.stderr)
            return 1
        except BaseException:
            tell()
            return 1
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def suggestions(text):
        import re
        import rlcompleter
        asked = json.loads(text.decode("utf-8", "replace"))
        line = asked.get("line")
        if not isinstance(line, str):
            rows = str(asked.get("code") or "").split("\n")
            line = rows[min(max(int(asked.get("row") or 0), 0), len(rows) - 1)]
        col = asked.get("col")
        word = re.search(r"[\w.]*$", line[:col] if isinstance(col, int) else line).group()
        completer, found = rlcompleter.Completer(main), []
        while word and len(found) < 500:
            match = completer.complete(word, len(found))
            if match is None:
                break
            found.append(match)
        return [match.rstrip("( ") for match in found]

    def complete(text):
        try:
            found = suggestions(text)
        except Exception:
            found = []
        suggest(found)

    def getpass(prompt="Password: ", stream=None):
        return ask(prompt, True)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    display = Display()
    sys.meta_path.insert(0, Plots())
    os.environ.setdefault("MPLBACKEND", "module://" + Plots.name)
    sys.displayhook = display
    sys.stdout, sys.stderr, sys.stdin = stream(b"o", 1), stream(b"e", 2), Input()
    sys.argv, sys.path[:1] = [""], [""]
    builtins.input = ask
    import getpass as passwords
    passwords.getpass = getpass
    while True:
        kind, text = receive()
        if kind == b"c":
            complete(text)
        elif kind == b"r":
            code = guarded(text)
            flush()
            if os.getpid() != own:
                os._exit(code)  # a child that came here by fork()
            send(b"f", b"%d" % code)


_aliquot()
