from __future__ import annotations

import asyncio

from engine.tools.files import MAX_LISTED, MAX_READ_CHARACTERS, MAX_WRITE_CHARACTERS


async def test_what_is_written_is_listed_and_read_back(call):
    wrote = await call("write_file", path="notes/a.md", content="eins\nzwei\n")
    assert (wrote.status, wrote.content) == ("success", "Wrote notes/a.md, which now has 10 bytes.")
    await call("write_file", path="notes/a.md", content="drei\n", append=True)
    assert (await call("ls")).content == "notes/"
    assert (await call("ls", path="/workspace/notes")).content == "a.md  15"
    assert (await call("read_file", path="notes/a.md")).content == "eins\nzwei\ndrei\n"


async def test_a_refused_path_is_told_to_the_model_as_a_failed_result(call):
    for name, more in (("ls", {}), ("read_file", {}), ("write_file", {"content": "x"}), ("grep", {"pattern": "x"})):
        answer = await call(name, path="../../etc/passwd", **more)
        assert answer.status == "error"
        assert "leads out of the workspace" in answer.content


async def test_a_file_that_is_not_there_is_told_plainly_and_never_with_the_hosts_folder(call, workspace):
    answer = await call("read_file", path="gone.txt")
    assert (answer.status, answer.content) == ("error", '"gone.txt" does not exist.')
    workspace.write("dir/x", b"")
    assert str(workspace.root) not in (await call("read_file", path="dir/x/y")).content


async def test_lines_can_be_chosen_and_a_range_beyond_the_end_says_how_many_there_are(call, workspace):
    workspace.write("f", b"1\n2\n3\n4\n")
    assert (await call("read_file", path="f", start_line=2, end_line=3)).content == "2\n3\n"
    assert (await call("read_file", path="f", start_line=0, end_line=99)).content == "1\n2\n3\n4\n"
    beyond = await call("read_file", path="f", start_line=9)
    assert (beyond.status, "has 4 lines" in beyond.content) == ("error", True)


async def test_a_long_file_is_cut_at_a_line_and_says_where_to_go_on(call, workspace):
    workspace.write("f", b"".join(b"line %d\n" % n for n in range(1, 20_001)))
    first = (await call("read_file", path="f")).content
    assert len(first) < MAX_READ_CHARACTERS + 200
    shown, note = first.rsplit("\n", 1)
    last = int(shown.rsplit(" ", 1)[1])
    assert note == f"[cut: lines 1-{last} of 20000; go on with start_line]"
    assert (await call("read_file", path="f", start_line=last + 1)).content.startswith(f"line {last + 1}\n")


async def test_one_endless_line_is_cut_too(call, workspace):
    workspace.write("f", b"x" * 1_000_000)
    answer = (await call("read_file", path="f")).content
    assert len(answer) < MAX_READ_CHARACTERS + 200
    assert "characters cut" in answer


async def test_a_binary_file_is_named_as_such_and_not_shown(call, workspace):
    workspace.write("a.png", b"\x89PNG\x00\x01\x02" * 100)
    workspace.write("gbk.txt", "中文的内容".encode("gbk"))
    png, gbk = await call("read_file", path="a.png"), await call("read_file", path="gbk.txt")
    assert (png.status, png.content) == ("error", "a.png is a binary file of 700 bytes and cannot be shown.")
    assert (gbk.status, "another encoding than UTF-8" in gbk.content) == ("error", True)


async def test_a_few_torn_characters_are_shown_as_such_and_counted(call, workspace):
    workspace.write("f", b"\xef\xbb\xbf" + b"plenty of good text " * 10 + b"\xff")
    answer = (await call("read_file", path="f")).content
    assert answer.startswith("plenty")
    assert "[1 characters are not valid UTF-8" in answer


async def test_text_no_file_can_hold_is_made_storable(call, workspace):
    answer = await call("write_file", path="f", content="a\x00b\ud83d \ud83c\udf78")
    assert answer.status == "success"
    assert workspace.read("f").decode() == "a\ufffdb\ufffd \U0001f378"


async def test_too_much_content_is_refused_with_the_way_out(call, workspace):
    answer = await call("write_file", path="f", content="x" * (MAX_WRITE_CHARACTERS + 1))
    assert (answer.status, "append" in answer.content) == ("error", True)
    assert len(answer.content) < 300
    assert workspace.listing() == []


async def test_a_long_listing_is_cut_and_says_how_many_are_missing(call, workspace):
    workspace.prepare()
    for number in range(MAX_LISTED + 3):
        (workspace.root / f"f{number:04}").touch()
    lines = (await call("ls")).content.splitlines()
    assert len(lines) == MAX_LISTED + 1
    assert lines[-1].startswith("[3 more entries")


async def test_replacing_wants_one_occurrence_unless_all_are_meant(call, workspace):
    workspace.write("f", b"a b a")
    missing = await call("str_replace", path="f", old_str="c", new_str="x")
    twice = await call("str_replace", path="f", old_str="a", new_str="x")
    empty = await call("str_replace", path="f", old_str="", new_str="x")
    assert [answer.status for answer in (missing, twice, empty)] == ["error"] * 3
    assert "occurs 2 times" in twice.content
    assert workspace.read("f") == b"a b a"
    assert (await call("str_replace", path="f", old_str="b", new_str="")).content == "Replaced 1 occurrence in f."
    assert (await call("str_replace", path="f", old_str="a", new_str="ä", replace_all=True)).status == "success"
    assert workspace.read("f").decode() == "ä  ä"


async def test_replacing_leaves_every_other_byte_alone(call, workspace):
    workspace.write("f", b"\xff\r\nold\r\n\xfe")
    await call("str_replace", path="f", old_str="old", new_str="new")
    assert workspace.read("f") == b"\xff\r\nnew\r\n\xfe"


async def test_appends_at_the_same_time_lose_nothing(call, workspace):
    await asyncio.gather(*(call("write_file", path="log", content=f"line {n}\n", append=True) for n in range(40)))
    assert sorted(workspace.read("log").decode().splitlines()) == sorted(f"line {n}" for n in range(40))
