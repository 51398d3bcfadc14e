/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of arguments and variables: replies of a field that tells what it was given. */
#include "testing.h"

#include "replies.h"

static const struct zoo_row rows[] = {
    { "{ echo }", NULL, "{\"data\":{\"echo\":\"required=5\"}}" },
    { "{ echo(int: 1, float: 2, string: \"s\", bool: false, id: 3, ids: "
      "4, matrix: 5, size: SMALL, required: 6) }",
      NULL,
      "{\"data\":{\"echo\":\"int=1 float=2 string=\\\"s\\\" bool=false id=\\\"3\\\" "
      "ids=[\\\"4\\\"] matrix=[[5]] size=SMALL required=6\"}}" },
    { "{ echo(int: null, float: 2.5, ids: [1, \"b\"], matrix: [[1, null], "
      "null, 3], shape: null) }",
      NULL,
      "{\"data\":{\"echo\":\"int=null float=2.5 ids=[\\\"1\\\",\\\"b\\\"] "
      "matrix=[[1,null],null,[3]] shape=null required=5\"}}" },
    { "{ echo(shape: { points: { x: 1 } }) }", NULL,
      "{\"data\":{\"echo\":\"shape={points:[{x:1,y:7}],name:\\\"s\\\","
      "size:LARGE} required=5\"}}" },
    { "{ echo(shape: { points: [{ x: 1, y: null }, { x: 2, label: \"l\" "
      "}], size: SMALL, inner: {} }) }",
      NULL,
      "{\"data\":{\"echo\":\"shape={points:[{x:1,y:null},{x:2,y:7,"
      "label:\\\"l\\\"}],name:\\\"s\\\",size:SMALL,inner:{points:[{x:1,y:7}],"
      "name:\\\"s\\\",size:LARGE}} required=5\"}}" },
    { "{ echo(json: { a: [1, 2.5, \"s\", true, null, X, { b: {} }] }) }", NULL,
      "{\"data\":{\"echo\":\"json={a:[1,2.5,\\\"s\\\",true,null,\\\"X\\\",{b:{}}]} "
      "required=5\"}}" },
    { "{ echo(uuid: \"2DE2B9691D0448A6AF160BC8ADB3C831\", big: "
      "9007199254740991, time: \"2026-11-21T01:02:03Z\", text: "
      "\"{\\\"a\\\":1}\") }",
      NULL,
      "{\"data\":{\"echo\":\"uuid=\\\"2de2b969-1d04-48a6-af16-0bc8adb3c831\\\" "
      "big=9007199254740991 time=\\\"2026-11-21T01:02:03Z\\\" "
      "text=\\\"{\\\\\\\"a\\\\\\\":1}\\\" required=5\"}}" },
    { "{ echo(choice: { b: \"x\" }) }", NULL,
      "{\"data\":{\"echo\":\"choice={b:\\\"x\\\"} required=5\"}}" },
    { "{ echo(string: \"\"\"\n  block\n    text\n\"\"\") }", NULL,
      "{\"data\":{\"echo\":\"string=\\\"block\\\\n  text\\\" required=5\"}}" },
    { "{ echo(string: \"\303\251\\u00e9\\u{1F600}\\n\") }", NULL,
      "{\"data\":{\"echo\":\"string=\\\"\303\251\303\251\360\237\230\200\\\\n\\\" required=5\"}}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      NULL, "{\"data\":{\"echo\":\"required=8\"}}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"i\":1,\"f\":2,\"s\":\"s\",\"b\":true,\"id\":3,\"ids\":\"x\",\"m\":[1,[2,null],"
      "null],\"z\":\"LARGE\",\"sh\":{\"points\":{\"x\":1}},"
      "\"u\":\"2de2b9691d0448a6af160bc8adb3c831\",\"j\":{\"a\":[1,\"b\","
      "{\"c\":null}]},\"big\":12,\"t\":\"2026-01-01\",\"c\":{\"a\":1},\"r\":2}",
      "{\"data\":{\"echo\":\"int=1 float=2 string=\\\"s\\\" bool=true id=\\\"3\\\" "
      "ids=[\\\"x\\\"] matrix=[[1],[2,null],null] size=LARGE "
      "shape={points:[{x:1,y:7}],name:\\\"s\\\",size:LARGE} "
      "uuid=\\\"2de2b969-1d04-48a6-af16-0bc8adb3c831\\\" "
      "json={a:[1,\\\"b\\\",{c:null}]} big=12 time=\\\"2026-01-01\\\" "
      "choice={a:1} required=2\"}}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"i\":null,\"f\":null,\"ids\":null,\"j\":null,\"sh\":null,\"m\":[]}",
      "{\"data\":{\"echo\":\"int=null float=null ids=null matrix=[] "
      "shape=null json=null required=8\"}}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"i\":1,\"f\":1.5,\"id\":\"i\",\"ids\":[1,\"2\"]}",
      "{\"data\":{\"echo\":\"int=1 float=1.5 id=\\\"i\\\" ids=[\\\"1\\\",\\\"2\\\"] "
      "required=8\"}}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"i\":1.5}",
      "{\"errors\":[{\"message\":\"Variable \\\"$i\\\" got invalid value 1.5; "
      "Int cannot represent non-integer value: "
      "1.5\",\"locations\":[{\"line\":1,\"column\":7}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"i\":3000000000}",
      "{\"errors\":[{\"message\":\"Variable \\\"$i\\\" got invalid value "
      "3000000000; Int cannot represent non 32-bit signed integer "
      "value: 3000000000\",\"locations\":[{\"line\":1,\"column\":7}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"i\":\"1\"}",
      "{\"errors\":[{\"message\":\"Variable \\\"$i\\\" got invalid value \\\"1\\\"; "
      "Int cannot represent non-integer value: "
      "\\\"1\\\"\",\"locations\":[{\"line\":1,\"column\":7}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"f\":\"x\"}",
      "{\"errors\":[{\"message\":\"Variable \\\"$f\\\" got invalid value \\\"x\\\"; "
      "Float cannot represent non numeric value: "
      "\\\"x\\\"\",\"locations\":[{\"line\":1,\"column\":16}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"s\":1}",
      "{\"errors\":[{\"message\":\"Variable \\\"$s\\\" got invalid value 1; "
      "String cannot represent a non string value: "
      "1\",\"locations\":[{\"line\":1,\"column\":27}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"b\":\"true\"}",
      "{\"errors\":[{\"message\":\"Variable \\\"$b\\\" got invalid value "
      "\\\"true\\\"; Boolean cannot represent a non boolean value: "
      "\\\"true\\\"\",\"locations\":[{\"line\":1,\"column\":39}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"id\":1.5}",
      "{\"errors\":[{\"message\":\"Variable \\\"$id\\\" got invalid value 1.5; "
      "ID cannot represent value: "
      "1.5\",\"locations\":[{\"line\":1,\"column\":52}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"ids\":[null]}",
      "{\"errors\":[{\"message\":\"Variable \\\"$ids\\\" got invalid value null "
      "at \\\"ids[0]\\\"; Expected non-nullable type \\\"ID!\\\" not to be "
      "null.\",\"locations\":[{\"line\":1,\"column\":61}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"z\":\"LARG\"}",
      "{\"errors\":[{\"message\":\"Variable \\\"$z\\\" got invalid value "
      "\\\"LARG\\\"; Value \\\"LARG\\\" does not exist in \\\"Size\\\" enum. Did "
      "you mean the enum value "
      "\\\"LARGE\\\"?\",\"locations\":[{\"line\":1,\"column\":87}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"z\":3}",
      "{\"errors\":[{\"message\":\"Variable \\\"$z\\\" got invalid value 3; Enum "
      "\\\"Size\\\" cannot represent non-string value: "
      "3.\",\"locations\":[{\"line\":1,\"column\":87}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"sh\":3}",
      "{\"errors\":[{\"message\":\"Variable \\\"$sh\\\" got invalid value 3; "
      "Expected type \\\"Shape\\\" to be an "
      "object.\",\"locations\":[{\"line\":1,\"column\":97}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"sh\":{\"points\":[{\"y\":1}]}}",
      "{\"errors\":[{\"message\":\"Variable \\\"$sh\\\" got invalid value { y: 1 "
      "} at \\\"sh.points[0]\\\"; Field \\\"x\\\" of required type \\\"Int!\\\" was "
      "not provided.\",\"locations\":[{\"line\":1,\"column\":97}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"sh\":{\"points\":[{\"x\":1,\"z\":2}],\"nam\":\"x\"}}",
      "{\"errors\":[{\"message\":\"Variable \\\"$sh\\\" got invalid value { x: "
      "1, z: 2 } at \\\"sh.points[0]\\\"; Field \\\"z\\\" is not defined by "
      "type \\\"Point\\\". Did you mean \\\"x\\\" or "
      "\\\"y\\\"?\",\"locations\":[{\"line\":1,\"column\":97}]},"
      "{\"message\":\"Variable \\\"$sh\\\" got invalid value { points: "
      "[[Object]], nam: \\\"x\\\" }; Field \\\"nam\\\" is not defined by type "
      "\\\"Shape\\\". Did you mean "
      "\\\"name\\\"?\",\"locations\":[{\"line\":1,\"column\":97}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"sh\":{\"points\":[{\"x\":1},{\"x\":null}]}}",
      "{\"errors\":[{\"message\":\"Variable \\\"$sh\\\" got invalid value null "
      "at \\\"sh.points[1].x\\\"; Expected non-nullable type \\\"Int!\\\" not "
      "to be null.\",\"locations\":[{\"line\":1,\"column\":97}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"u\":\"x\"}",
      "{\"errors\":[{\"message\":\"Variable \\\"$u\\\" got invalid value \\\"x\\\"; "
      "Expected type \\\"UUID\\\". UUID is 32 hexadecimal digits, with or "
      "without dashes\",\"locations\":[{\"line\":1,\"column\":109}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"big\":1.5}",
      "{\"errors\":[{\"message\":\"Variable \\\"$big\\\" got invalid value 1.5; "
      "Expected type \\\"BigInt\\\". BigInt is a whole number of at most 64 "
      "bits\",\"locations\":[{\"line\":1,\"column\":129}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"c\":{}}",
      "{\"errors\":[{\"message\":\"Variable \\\"$c\\\" got invalid value {}; "
      "Exactly one key must be specified for OneOf type "
      "\\\"Choice\\\".\",\"locations\":[{\"line\":1,\"column\":157}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"c\":{\"a\":1,\"b\":\"x\"}}",
      "{\"errors\":[{\"message\":\"Variable \\\"$c\\\" got invalid value { a: 1, "
      "b: \\\"x\\\" }; Exactly one key must be specified for OneOf type "
      "\\\"Choice\\\".\",\"locations\":[{\"line\":1,\"column\":157}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"c\":{\"a\":null}}",
      "{\"errors\":[{\"message\":\"Variable \\\"$c\\\" got invalid value null at "
      "\\\"c.a\\\"; Field \\\"a\\\" must be "
      "non-null.\",\"locations\":[{\"line\":1,\"column\":157}]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"r\":null}",
      "{\"data\":{\"echo\":null},\"errors\":[{\"message\":\"Argument "
      "\\\"required\\\" of non-null type \\\"Int!\\\" must not be "
      "null.\",\"locations\":[{\"line\":1,\"column\":348}],\"path\":[\"echo\"]}]}" },
    { "query($i: Int, $f: Float, $s: String, $b: Boolean, $id: ID, "
      "$ids: [ID!], $m: [[Int]], $z: Size, $sh: Shape, $u: UUID, $j: "
      "JSON, $big: BigInt, $t: DateTime, $c: Choice, $r: Int = 8) { "
      "echo(int: $i, float: $f, string: $s, bool: $b, id: $id, ids: "
      "$ids, matrix: $m, size: $z, shape: $sh, uuid: $u, json: $j, big: "
      "$big, time: $t, choice: $c, required: $r) }",
      "{\"m\":[[\"x\"]],\"i\":{\"a\":{\"b\":{\"c\":{\"d\":1}}}},\"f\":[1,2,3,4,5,6,7,8,"
      "9,10,11,12]}",
      "{\"errors\":[{\"message\":\"Variable \\\"$i\\\" got invalid value { a: { "
      "b: [Object] } }; Int cannot represent non-integer value: { a: { "
      "b: [Object] } }\",\"locations\":[{\"line\":1,\"column\":7}]},"
      "{\"message\":\"Variable \\\"$f\\\" got invalid value [1, 2, 3, 4, 5, 6, "
      "7, 8, 9, 10, ... 2 more items]; Float cannot represent non "
      "numeric value: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... 2 more "
      "items]\",\"locations\":[{\"line\":1,\"column\":16}]},"
      "{\"message\":\"Variable \\\"$m\\\" got invalid value \\\"x\\\" at "
      "\\\"m[0][0]\\\"; Int cannot represent non-integer value: "
      "\\\"x\\\"\",\"locations\":[{\"line\":1,\"column\":74}]}]}" },
    { "query($i: Int) { echo(int: $i, required: $i) }", NULL,
      "{\"data\":{\"echo\":\"required=5\"}}" },
    { "query($i: Int) { echo(required: $i) }", "{\"i\":null}",
      "{\"data\":{\"echo\":null},\"errors\":[{\"message\":\"Argument "
      "\\\"required\\\" of non-null type \\\"Int!\\\" must not be "
      "null.\",\"locations\":[{\"line\":1,\"column\":33}],\"path\":[\"echo\"]}]}" },
    { "query($i: Int) { echo(json: { a: $i, b: [$i] }, matrix: [$i, "
      "[$i]]) }",
      NULL,
      "{\"errors\":[{\"message\":\"Variable \\\"$i\\\" of type \\\"Int\\\" used in "
      "position expecting type "
      "\\\"[Int]\\\".\",\"locations\":[{\"line\":1,\"column\":7},{\"line\":1,"
      "\"column\":58}]}]}" },
    { "query($i: Int) { echo(json: { a: $i, b: [$i] }, matrix: [$i, "
      "[$i]]) }",
      "{\"i\":5}",
      "{\"errors\":[{\"message\":\"Variable \\\"$i\\\" of type \\\"Int\\\" used in "
      "position expecting type "
      "\\\"[Int]\\\".\",\"locations\":[{\"line\":1,\"column\":7},{\"line\":1,"
      "\"column\":58}]}]}" },
    { "query($s: String) { echo(shape: { points: [], name: $s }) }", NULL,
      "{\"data\":{\"echo\":\"shape={points:[],name:\\\"s\\\",size:LARGE} "
      "required=5\"}}" },
};

static void test_inputs(void **state)
{
    (void)state;
    zoo_check(rows, AQ_COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
