package interop

// excused are the intended differences. Each tag is a row of docs/differences.md, which
// gives the reason.
var excused = []excuse{
	excuseOf("event-zxid", "", `(.*) zxid unknown`, `(.*) zxid base[+-][0-9]+`),
	excuseOf("exists-needs-read", "", `(exists|stranger asks whether it exists): ok`,
		`(exists|stranger asks whether it exists): not permitted by the ACL`),
	excuseOf("multi-create2-stat", "multi", `(  [0-9]+: ok "[^"]+" "" \[\]) c=0 .*`, `(  [0-9]+: ok "[^"]+" "" \[\]) c=base\+2 .*`),
	excuseOf("supplementary-utf8", "raw paths", `(sync "/😀": xid [0-9]+ zxid base\+[0-9]+ err ok) .*xed.*`,
		`(sync "/😀": xid [0-9]+ zxid base\+[0-9]+ err ok) .*😀"`),
	excuseOf("null-watch-path", "raw requests", `(addWatch with a null path: xid 134 zxid base\+[0-9]+) err ok .*`,
		`(addWatch with a null path: xid 134 zxid base\+[0-9]+) err request could not be decoded .*`),
	excuseOf("multi-create2-stat", "quota texts", `(  [0-9]+: ok "[^"]+" "" \[\]) c=0 .*`, `(  [0-9]+: ok "[^"]+" "" \[\]) c=base.*`),
	excuseOf("multi-create2-stat", "raw null fields", `(multi of create2 with flags [0-3]: .* err ok body results )\["create ok ([^ ]*) *"\]`,
		`(multi of create2 with flags [0-3]: .* err ok body results )\["create2 ok ([^ ]*) c=base.*"\]`),
	excuseOf("multi-null-path", "raw null fields", `(multi(?:Read)? of .* null[^:]*: xid [0-9]+) zxid base\+[0-9]+ err request could not be decoded body results .*`,
		`(multi(?:Read)? of .* null[^:]*: xid [0-9]+) zxid base\+[0-9]+ err request could not be decoded body none`),
	excuseOf("multi-create-flags", "raw null fields", `(multi of .*flags[^:]*: xid [0-9]+ zxid base\+[0-9]+) err ok body .*error bad arguments.*`,
		`(multi of .*flags[^:]*: xid [0-9]+ zxid base\+[0-9]+) err request could not be decoded body none`),
	excuseOf("persistent-watch-removal", "raw null fields", `(removeWatches [a-z]+ [45]: xid [0-9]+ zxid base\+[0-9]+) err request could not be decoded .*`,
		`(removeWatches [a-z]+ [45]: xid [0-9]+ zxid base\+[0-9]+) err no such watch .*`),
	excuseOf("null-check-watches", "raw null fields", `(checkWatches null [1-5]: xid [0-9]+ zxid base\+[0-9]+) err request could not be decoded .*`,
		`(checkWatches null [1-5]: xid [0-9]+ zxid base\+[0-9]+) err no such watch .*`),
	excuseOf("null-watch-lists", "raw null watches", `(what setData brings first, null [a-z ]+): event NodeDataChanged .*`,
		`(what setData brings first, null [a-z ]+): xid 1 .* err ok .*`),
	excuseOf("read-only-unknown-session", readOnlyBody, `(a session that this server does not know): ok 37 bytes, timeout 0, .*`,
		`(a session that this server does not know): closed`),
	excuseOf("wchs-watches-nothing", watchWordsBody, `(.*: wchs: <nil> )"1 connections watching 0 paths.*`,
		`(.*: wchs: <nil> )"0 connections watching 0 paths.*`),
	excuseOf("wchs-watches-nothing", watchWordsBody, `(.*: wchc: <nil> )"ID\\n\\n"`, `(.*: wchc: <nil> )"\\n"`),
}

// excusedLater are intended differences from ZooKeeper 3.9 that 3.8.0 does not have.
var excusedLater = []excuse{
	excuseOf("multi-null-list", "raw null fields", `(multi of .*create null list: xid [0-9]+ zxid base\+[0-9]+) err request could not be decoded body none`,
		`(multi of .*create null list: xid [0-9]+ zxid base\+[0-9]+) err ok body results .*error invalid ACL.*`),
	excuseOf("multi-null-list", "raw null fields", `(multiRead of create .*: xid [0-9]+ zxid base\+[0-9]+ err request could not be decoded body) none`,
		`(multiRead of create .*: xid [0-9]+ zxid base\+[0-9]+ err request could not be decoded body) results \[\]`),
	// The requests have a null list in front of the flags of a create.
	excuseOf("multi-null-list", "random requests", `([0-9]+ multi ".*\\xff\\xff\\xff\\xff\\x00\\x00\\x00\\x0[0-6].*": xid [0-9]+ zxid base\+[0-9]+) err request could not be decoded body none`,
		`([0-9]+ multi ".*": xid [0-9]+ zxid base\+[0-9]+) err ok body results .*error .*`),
}
