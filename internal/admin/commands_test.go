package admin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/record"
	"bellwether/internal/server"
	"bellwether/internal/store"
	"bellwether/wire"
)

// answers serves the commands of a server and returns the URL of their list.
func answers(t *testing.T, s *server.Server) string {
	t.Helper()
	h := httptest.NewServer(New(version).Commands(s, "/commands", time.Minute))
	t.Cleanup(h.Close)
	return h.URL + "/commands"
}

// send sends a request and returns the status, the body and the headers.
func send(t *testing.T, method, url, auth string, body io.Reader) (int, string, http.Header) {
	t.Helper()
	q, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if auth != "" {
		q.Header.Set("Authorization", auth)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text), r.Header
}

// upstream returns the answers of ZooKeeper 3.8.0 by the kind of server and the command.
func upstream(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/adminserver-3.8.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for part := range strings.SplitSeq(string(text), "== ") {
		if name, body, ok := strings.Cut(part, "\n"); ok {
			all[name] = strings.TrimSuffix(body, "\n")
		}
	}
	return all
}

// shape replaces every value of an answer, and the names of fields that are numbers or paths, by their kinds.
func shape(text string) string {
	for _, r := range []struct{ pattern, by string }{
		{`: "(?:[^"\\]|\\.)*"`, `: "text"`}, {`: -?[0-9]+\.[0-9E-]+`, `: 0.0`}, {`: -?[0-9]+`, `: 0`},
		{`"(?:[0-9]+|/[^"]*)" :`, `"key" :`}, {`\[ -?[0-9]+(?:, -?[0-9]+)* \]`, `[ 0 ]`}, {`\[ "[^"]*"(?:, "[^"]*")* \]`, `[ "text" ]`},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	return text
}

// TestCommandsHaveTheShapeOfZooKeeper compares the answers of a standalone server with those of ZooKeeper 3.8.0
// in the same state, byte by byte except for the values: names, their order, nesting and blanks.
func TestCommandsHaveTheShapeOfZooKeeper(t *testing.T) {
	s := serve(t, "*")
	session(t, s, 30_000, create("/a", 0), create("/e", wire.FlagEphemeral), watch(wire.OpGetData, "/a"), watch(wire.OpExists, "/nope"))
	url := answers(t, s)
	for name, want := range upstream(t) {
		command, ok := strings.CutPrefix(name, "standalone ")
		if !ok || command == "hash" { // there are no digests yet; see TestHashCommand
			continue
		}
		status, got, h := send(t, "GET", url+"/"+command, "", nil)
		if status != 200 || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d, %v", command, status, h)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s is not JSON: %s", command, got)
		}
		want = strings.ReplaceAll(want, `"/a", "/e"`, `"/e"`)
		if shape(got) != shape(want) {
			t.Errorf("%s:\n%s\nwant the shape of\n%s", command, got, want)
		}
	}
}

// TestSameNamesAsWords shows that every alias gives the answer of its primary name, and that the list has every
// command once, in order.
func TestSameNamesAsWords(t *testing.T) {
	s := serve(t, "*")
	url := answers(t, s)
	_, list, _ := send(t, "GET", url, "", nil)
	var want strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&want, "<a href=\"/commands/%s\">%s</a>\n<br/>\n", c.names[0], c.names[0])
		for _, name := range c.names {
			if _, text, _ := send(t, "GET", url+"/"+name, "", nil); !c.post && !c.guarded && !strings.Contains(text, `"command" : "`+c.names[0]+`"`) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	if list != want.String() {
		t.Errorf("list:\n%s", list)
	}
	if !slices.IsSortedFunc(commands, func(a, b command) int { return strings.Compare(a.names[0], b.names[0]) }) {
		t.Error("the commands are not sorted")
	}
	if _, again, _ := send(t, "GET", url+"/", "", nil); again != list {
		t.Errorf("/commands/: %s", again)
	}
}

// TestHashCommand shows the digest of every 128th transaction, in ZooKeeper's form.
func TestHashCommand(t *testing.T) {
	s := serve(t, "*")
	var writes []func(int32) []byte
	for i := range 260 {
		writes = append(writes, create(fmt.Sprintf("/n%d", i), 0))
	}
	session(t, s, 30_000, writes...)
	_, got, _ := send(t, "GET", answers(t, s)+"/hash", "", nil)
	if want := upstream(t)["standalone hash"]; shape(got) != shape(want) || !strings.Contains(got, `"zxid" : 128,`) {
		t.Errorf("hash: %s\nwant the shape of\n%s", got, want)
	}
}

// TestMethods shows which methods a command has.
func TestMethods(t *testing.T) {
	url := answers(t, serve(t, "*"))
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", "/ruok", 405, "GET, HEAD, OPTIONS"}, {"PUT", "/ruok", 405, "GET, HEAD, OPTIONS"}, {"DELETE", "", 405, "GET, HEAD, OPTIONS"},
		{"BREW", "/ruok", 405, "GET, HEAD, OPTIONS"}, {"TRACE", "/ruok", 403, ""}, {"OPTIONS", "/ruok", 200, "GET, HEAD, OPTIONS"},
		{"HEAD", "/ruok", 200, ""}, {"GET", "/restore", 405, "POST, OPTIONS"}, {"POST", "/snapshot", 405, "GET, HEAD, OPTIONS"}, {"POST", "/nosuch", 405, "GET, HEAD, OPTIONS"},
	} {
		if status, _, h := send(t, c.method, url+c.path, "", nil); status != c.status || h.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q", c.method, c.path, status, h.Get("Allow"))
		}
	}
}

// TestStrangeNames shows that no form of a URL reaches another command than the one that it names, and that the
// answer is JSON whatever the name contains.
func TestStrangeNames(t *testing.T) {
	url := answers(t, serve(t, "*"))
	for path, want := range map[string]string{
		"/%72uok": "ruok", "//ruok": "/ruok", "/ruok/": "ruok/", "/ru%2fok": "ru/ok", "/RUOK": "RUOK", "/..%2f..%2fetc": "../../etc",
		"/%22%3E%3Cscript%3E": `">` + "<script>", "/%00%01%1f%ff": "\x00\x01\x1f\ufffd", "/%E2%80%A8": "\u2028",
	} {
		status, got, _ := send(t, "GET", url+path, "", nil)
		var o struct{ Command, Error string }
		if err := json.Unmarshal([]byte(got), &o); err != nil || status != 200 || o.Command != want || o.Error != "" && o.Error != "Unknown command: "+want {
			t.Errorf("%s: %d %s: %v", path, status, got, err)
		}
	}
}

// TestGuardedCommands shows the statuses of ZooKeeper 3.9 for authentication and authorisation, in its order.
func TestGuardedCommands(t *testing.T) {
	s := serve(t, "*")
	session(t, s, 30_000, setACL("/", wire.ACL{Perms: wire.PermAll, ID: wire.ID{Scheme: "digest", ID: wire.DigestID("root:passwd")}}, wire.ACL{Perms: wire.PermRead, ID: wire.ID{Scheme: "world", ID: "anyone"}}))
	url := answers(t, s)
	for _, c := range []struct {
		auth   string
		status int
		err    string
	}{
		{"", 401, "Auth info is missing for the command"},
		{"digest", 401, "Not authenticated"}, {"world anyone", 401, "Not authenticated"}, {"super x", 401, "Not authenticated"}, {"auth ", 401, "Not authenticated"},
		{"digest  root:passwd", 401, "Not authenticated"}, {"digest a b", 401, "Not authenticated"}, {"x509", 401, "Not authenticated"}, {"Basic cm9vdA==", 401, "Not authenticated"},
		{"ip", 403, "Not authorized"}, {"digest root:wrong", 403, "Not authorized"}, {"digest root:passwd", 200, ""},
	} {
		status, text, h := send(t, "GET", url+"/snapshot?streaming=false", c.auth, nil)
		if want := fmt.Sprintf("\"error\" : \"%s\"", c.err); status != c.status || c.err != "" && !strings.Contains(text, want) {
			t.Errorf("%q: %d %s", c.auth, status, text)
		}
		if c.status == 200 && (h.Get("last_zxid") == "" || h.Get("snapshot_size") == "" || !strings.Contains(text, `"command" : "snapshot",`)) {
			t.Errorf("%q: %v %s", c.auth, h, text)
		}
	}
}

// TestSnapshotCommand shows that the answer is the snapshot file, that headers describe it, and that a second
// request immediately after the first is refused.
func TestSnapshotCommand(t *testing.T) {
	s := serve(t, "*")
	session(t, s, 30_000, create("/a", 0), create("/b", 0))
	url := answers(t, s) + "/snapshot"
	status, text, h := send(t, "GET", url, "ip", nil)
	if status != 200 || h.Get("Content-Type") != "application/octet-stream" || h["Last_zxid"][0] != "0x3" || h["Snapshot_size"][0] != fmt.Sprint(len(text)) {
		t.Fatalf("%d %v", status, h)
	}
	var sink names
	z, err := store.DecodeUnnamed(strings.NewReader(text), &sink)
	if err != nil || z != 3 || !slices.Contains(sink.paths, "/b") {
		t.Errorf("decoded: %v, %v, %v", z, err, sink.paths)
	}
	if status, text, _ = send(t, "GET", url, "ip", nil); status != 429 {
		t.Errorf("at once: %d %s", status, text)
	}
	if got := ask(t, s, "mntr"); !strings.Contains(got, "zk_snapshot_rate_limited_count\t1\n") {
		t.Error("mntr does not count the request that was too early")
	}
}

// TestRestoreCommand shows that a snapshot of one server replaces the history of another one, which then continues
// in a new epoch, and that a bad snapshot changes nothing.
func TestRestoreCommand(t *testing.T) {
	from := serve(t, "*")
	session(t, from, 30_000, create("/a", 0), create("/b", 0))
	_, snap, _ := send(t, "GET", answers(t, from)+"/snapshot", "ip", nil)

	to := serve(t, "*")
	to.Config().Admin.RateInterval = 0
	old := session(t, to, 30_000, create("/old", 0))
	url := answers(t, to) + "/restore"
	for name, body := range map[string]string{"cut": snap[:len(snap)-9], "damaged": strings.Replace(snap, "/b", "/c", 1), "foreign": "hello"} {
		if status, text, _ := send(t, "POST", url, "ip", strings.NewReader(body)); status != 500 || !strings.Contains(text, "nothing is restored") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _, _ := send(t, "POST", url, "ip", nil); status != 400 {
		t.Errorf("without a body: %d", status)
	}
	status, text, _ := send(t, "POST", url, "ip", strings.NewReader(snap))
	if status != 200 || !strings.Contains(text, `"last_zxid" : 4294967296,`) {
		t.Fatalf("%d %s", status, text)
	}
	if _, err := old.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives the restore")
	}
	session(t, to, 30_000, create("/new", 0))
	if got := ask(t, to, "srvr"); !strings.Contains(got, "Zxid: 0x100000002\n") || !strings.Contains(got, "Node count: 8\n") {
		t.Errorf("after it: %s", got)
	}
	for _, m := range []string{"zk_restore_error_count\t3\n", "zk_cnt_restore_time\t1\n"} {
		if got := ask(t, to, "mntr"); !strings.Contains(got, m) {
			t.Errorf("mntr does not contain %q", m)
		}
	}
}

// TestRestoredHistorySurvives shows that a restart keeps a restored history and what was written after the
// restore, and that the old history is gone.
func TestRestoredHistorySurvives(t *testing.T) {
	from := serve(t, "*")
	session(t, from, 30_000, create("/a", 0))
	_, snap, _ := send(t, "GET", answers(t, from)+"/snapshot", "ip", nil)

	disk := store.NewMem(2)
	t.Run("restore", func(t *testing.T) {
		to := serveOn(t, disk, time.Second, "*")
		session(t, to, 30_000, create("/old", 0))
		if status, text, _ := send(t, "POST", answers(t, to)+"/restore", "ip", strings.NewReader(snap)); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		session(t, to, 30_000, create("/new", 0))
	})
	again := serveOn(t, disk, time.Second, "*")
	for path, there := range map[string]bool{"/a": true, "/new": true, "/old": false} {
		if _, exists := again.Tree().Permits(path, wire.PermRead, nil); exists != there {
			t.Errorf("%s exists: %v", path, exists)
		}
	}
}

// TestSnapshotAndRestoreAreRefused shows the answers if the configuration does not allow snapshot and restore, and
// the answer of a member of an ensemble to restore.
func TestSnapshotAndRestoreAreRefused(t *testing.T) {
	s := serve(t, "*")
	url := answers(t, s)
	for _, c := range []struct {
		what    string
		set     func(on bool)
		status  int
		command string
	}{
		{"admin.snapshot.enabled=false", func(on bool) { s.Config().Admin.Snapshot = !on }, 503, "snapshot"},
		{"admin.restore.enabled=false", func(on bool) { s.Config().Admin.Restore = !on }, 503, "restore"},
		{"serializeLastProcessedZxid.enabled=true", func(on bool) { s.Config().Storage.LastProcessedZxid = !on }, 500, "snapshot"},
		{"serializeLastProcessedZxid.enabled=true", func(on bool) { s.Config().Storage.LastProcessedZxid = !on }, 500, "restore"},
	} {
		c.set(true)
		method := "GET"
		if c.command == "restore" {
			method = "POST"
		}
		if status, text, _ := send(t, method, url+"/"+c.command, "ip", strings.NewReader("x")); status != c.status || !strings.Contains(text, c.what) {
			t.Errorf("%s with %s: %d %s", c.command, c.what, status, text)
		}
		c.set(false)
	}
	member, _, _, _ := member5(t, store.NewMem(1))
	if status, text, _ := send(t, "POST", answers(t, member)+"/restore", "ip", strings.NewReader("x")); status != 409 || !strings.Contains(text, "stop all members, set aside the files snapshot.* and log.*") {
		t.Errorf("on a member: %d %s", status, text)
	}
}

// TestCommandsOfAMember shows the commands that differ in an ensemble, in ZooKeeper's shape.
func TestCommandsOfAMember(t *testing.T) {
	s, _, _, _ := member5(t, store.NewMem(1))
	url, all := answers(t, s), upstream(t)
	for _, command := range []string{"leader", "zabstate", "server_stats"} {
		_, got, _ := send(t, "GET", url+"/"+command, "", nil)
		got = strings.Replace(got, `"client_address" : null`, `"client_address" : "text"`, 1) // this server has no fixed client port
		// ZooKeeper's order of the fields of server_stats depends on the JVM.
		if want := all["leader "+command]; sortedLines(shape(got)) != sortedLines(shape(want)) {
			t.Errorf("%s:\n%s\nwant the shape of\n%s", command, got, want)
		}
	}
	_, got, _ := send(t, "GET", url+"/voting_view", "", nil)
	if !strings.Contains(got, `"5" : {`) || !strings.Contains(got, `"learner_type" : "participant"`) {
		t.Errorf("voting_view: %s", got)
	}
	_, got, _ = send(t, "GET", url+"/monitor", "", nil)
	if !strings.HasPrefix(got, "{\n  \"version\" : \""+version+"\",\n  \"server_state\" : \"leader\",\n  \"peer_state\" : \"leading - broadcast\",\n") {
		t.Errorf("monitor: %.300s", got)
	}
}

func sortedLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, ",\n", "\n"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestJavaDouble compares doubles with the output of Java 17.
func TestJavaDouble(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 0.1538: "0.1538", 34.875: "34.875", 1: "1.0", -2: "-2.0", 1e7: "1.0E7", 12345678.5: "1.23456785E7", 9999999: "9999999.0", 0.001: "0.001", 0.0005: "5.0E-4"} {
		if got := javaDouble(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// TestWriteJSON shows the escapes and the forms of empty values.
func TestWriteJSON(t *testing.T) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	writeJSON(w, object{{"a\"\\\n\x01\x7f\xffé<&", nil}, {"l", list{}}, {"o", object{}}, {"n", list{object{{"x", 1.5}}, object{}}}, {"t", true}}, "")
	w.Flush()
	const want = "{\n  \"a\\\"\\\\\\n\\u0001\x7f\ufffdé<&\" : null,\n  \"l\" : [ ],\n  \"o\" : { },\n  \"n\" : [ {\n    \"x\" : 1.5\n  }, { } ],\n  \"t\" : true\n}"
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}

// names is a sink of snapshots that keeps the paths.
type names struct {
	store.Discard
	paths []string
}

// Node keeps a path.
func (n *names) Node(path string, _ *record.DataNode) error {
	n.paths = append(n.paths, path)
	return nil
}

func setACL(path string, acl ...wire.ACL) func(int32) []byte {
	return request(wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: acl, Version: -1})
}
