"""Lines of a plugin's source text in the records of its errors."""

from __future__ import annotations

import json
import zipfile

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError, SetupError
from rowmerge_nb.connectors.trino import java_sources
from rowmerge_nb.connectors.trino.java_sources import JavaSources
from rowmerge_nb.connectors.trino.java_stack import raised_of
from rowmerge_nb.engine.spark.errors.connector_frames import with_code
from tests.connectors.trino.fake_connector import FakeTrinoConnector
from tests.report.explorer_browser import needs_browser, seen

SINK = """package shop;

class Sink {
    void finish() {
        throw new ShopException("<b>lost</b>");
    }
}
"""
LINES = (
    (3, "class Sink {"),
    (4, "    void finish() {"),
    (5, '        throw new ShopException("<b>lost</b>");'),
    (6, "    }"),
    (7, "}"),
)


def jar_of(folder, text):
    path = folder / "shop-sources.jar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr("shop/Sink.java", text)
    return path


@pytest.mark.parametrize("root", [".", "src/main/java", "shop-plugin/src/main/java"])
def test_a_line_is_read_from_a_folder_or_a_project(tmp_path, root):
    file = tmp_path / root / "shop" / "Sink.java"
    file.parent.mkdir(parents=True)
    file.write_text(SINK, encoding="utf-8")
    assert JavaSources(tmp_path).lines_around("Sink.java", "shop.Sink.finish", 5) == LINES


def test_a_line_is_read_from_the_first_jar_with_the_file(tmp_path):
    sources = JavaSources([tmp_path, jar_of(tmp_path, SINK)])
    assert sources.lines_around("Sink.java", "shop.Sink$Inner.lambda$finish$0", 5) == LINES
    assert sources.lines_around("Sink.java", "other.Sink.finish", 5) == ()
    assert sources.lines_around("Sink.java", "shop.Sink.finish", 99) == ()


@pytest.mark.parametrize(
    ("file", "function"),
    [
        ("../secret.java", "shop.Sink.finish"),
        ("Sink.java", "../../shop.Sink.finish"),
        ("/etc/passwd", "shop.Sink.finish"),
        ("*.java", "shop.Sink.finish"),
    ],
)
def test_a_name_that_is_not_a_class_reads_nothing(tmp_path, file, function):
    (tmp_path / "src" / "shop").mkdir(parents=True)
    (tmp_path / "src" / "shop" / "Sink.java").write_text(SINK)
    (tmp_path / "src" / "secret.java").write_text(SINK)
    assert JavaSources(tmp_path / "src").lines_around(file, function, 5) == ()


def test_a_large_file_and_a_damaged_jar_have_no_lines(tmp_path, monkeypatch):
    jar = jar_of(tmp_path, SINK)
    sources = JavaSources(jar)
    monkeypatch.setattr(java_sources, "_MOST_BYTES", 10)
    assert sources.lines_around("Sink.java", "shop.Sink.finish", 5) == ()
    monkeypatch.undo()
    jar.write_bytes(b"no longer a jar")
    assert sources.lines_around("Sink.java", "shop.Sink.finish", 5) == ()


def test_missing_sources_are_an_error(tmp_path):
    (tmp_path / "text").write_text("no jar")
    for path in (tmp_path / "missing", tmp_path / "text"):
        with pytest.raises(SetupError, match="neither a folder nor a jar"):
            JavaSources(path)


def test_the_record_of_an_error_has_the_line_and_those_of_its_causes(tmp_path):
    connector = FakeTrinoConnector(tmp_path, sources=jar_of(tmp_path, SINK))
    frames = ["shop.Sink.finish(Sink.java:5)"]
    answer = {
        "class": "shop.ShopException",
        "message": "lost",
        "frames": frames,
        "causes": [{"class": "E", "message": "", "frames": frames * 2}],
    }
    (raised,) = with_code([raised_of(answer)], connector.get_source_lines)
    assert raised.frames[-1].text == 'throw new ShopException("<b>lost</b>");'
    assert raised.causes[0].frames[-1].code == LINES
    connector.close()


def test_sources_that_fail_do_not_hide_the_error():
    def fail(*_):
        raise OSError("the disk is gone")

    answer = {"class": "E", "message": "lost", "frames": ["shop.Sink.finish(Sink.java:5)"]}
    (raised,) = with_code([raised_of(answer)], fail)
    assert raised.frames[-1].code == ()


@needs_browser
@pytest.mark.spark
@pytest.mark.parametrize("call", ["finish", "finish_merge"])
def test_the_explorer_shows_the_line_of_java_and_the_stack(spark, tmp_path, call):
    frames = ["java.util.List.of(List.java:1)", "shop.Sink.finish(Sink.java:5)"]
    answer = {
        "message": "<b>lost</b>",
        "code": "SHOP_ERROR",
        "frames": frames,
        "causes": [{"class": "java.io.IOException", "message": "disk", "frames": frames[1:]}],
    }
    connector = FakeTrinoConnector(
        tmp_path,
        properties={"fail": json.dumps({"call": call, "error": answer})},
        sources=jar_of(tmp_path, SINK),
    )
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    engine.run("CREATE TABLE shop.default.accounts (id bigint, name varchar)")
    with pytest.raises(ConnectorError, match="lost") as caught:
        engine.run(
            "MERGE INTO shop.default.accounts t USING (VALUES (1, 'a')) s(id, name)"
            " ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)"
        )
    connector.close()
    page = tmp_path / "failed.html"
    caught.value.result.save_html(page)
    told = seen(
        page.read_text(encoding="utf-8"),
        """told.call = text('.rx-raised h4'); told.what = text('.rx-raised .rm-err');
        told.places = all('.rx-raised .rm-meta').map((one) => one.textContent);
        told.code = text('.rx-raised pre'); told.line = text('.rx-raised pre b:not(.rm-err)');
        told.stack = all('.rx-raised details > *').map((one) => one.textContent);
        told.markup = all('.rx-raised pre b b').length;""",
        tmp_path,
    )
    assert told["call"].startswith(call)
    assert "<b>lost</b>" in told["what"]
    assert "Sink.java, line 5, in shop.Sink.finish" in told["places"]
    assert told["line"] == '        throw new ShopException("<b>lost</b>");'
    assert "void finish() {" in told["code"]
    assert told["markup"] == 0
    title, stack = told["stack"]
    assert "stack" in title.lower()
    assert "shop.Sink.finish(Sink.java:5)" in stack
    assert "Caused by: java.io.IOException: disk" in stack
