package interop

import (
	"errors"
	"io"
	"net"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
)

// wordInputs are four-letter words as clients and scripts send them: alone, with a line end,
// with additional bytes, in two parts, truncated.
var wordInputs = [][]string{
	{"ruok"}, {"ruok\n"}, {"ruok\r\n"}, {"ru", "ok"}, {"r", "u", "o", "k"}, {"ruokruok"}, {"ruok" + strings.Repeat("x", 100)},
	{"gtmk"}, {"gtmk\n"}, {"gt", "mk\n"}, {"gtmk\x00\x00\x00\x00\x00\x00\x01\x32"},
	{"stmk"}, {"stmk\n"}, {"st", "mk"}, {"stmk\x00\x00\x00\x00\x00\x00\x01"}, {"stmk\x00\x00\x00\x00\x00\x00\x01\x32"},
	{"conf"}, {"conf\n"}, {"co", "nf"}, {"hash"}, {"isro"}, {"wchs"}, {"mntr\r\n"}, {"dump"}, {"cons"},
	{"abcd"}, {"RUOK"}, {" ruok"}, {"\nruok"}, {"ruo"}, {""},
}

// wordAnswer sends the parts of a word, closes the sending side, and returns everything that the
// server sends until it closes the connection.
func wordAnswer(t *testing.T, s *target.Server, parts []string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(behaviourTimeout))
	for _, p := range parts {
		io.WriteString(conn, p) // an error means that the server has already answered and closed the connection
	}
	if len(parts[0]) < 4 && len(parts) == 1 {
		conn.(*net.TCPConn).CloseWrite()
	}
	text, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%s: %q: %v", s.Kind, parts, err)
	}
	return string(text)
}

// TestWordInput shows that both servers answer the same bytes with the same text and close the
// connection, whether or not the whitelist contains the word.
func TestWordInput(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"srvr", "ruok,gtmk,stmk"} {
		t.Run(list, func(t *testing.T) {
			t.Parallel()
			saw := map[string]string{}
			for _, kind := range target.Kinds() {
				s := target.StartFor(t, kind, target.Options{Extra: map[string]string{"4lw.commands.whitelist": list}})
				for _, parts := range wordInputs {
					name, got := strings.Join(parts, "|"), wordAnswer(t, s, parts)
					if want, seen := saw[name]; seen && want != got {
						t.Errorf("%q: %s answers %q, the other %q", name, kind, got, want)
					}
					saw[name] = got
				}
			}
		})
	}
}

// environment returns the lines of the word envi, and their names in order.
func environment(t *testing.T, s *target.Server) (lines map[string]string, names []string) {
	t.Helper()
	text, err := s.Word("envi")
	if err != nil || !strings.HasPrefix(text, "Environment:\n") {
		t.Fatalf("%s: %v: %s", s.Kind, err, text)
	}
	lines = map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "Environment:\n")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		lines[name], names = value, append(names, name)
	}
	return lines, names
}

// TestEnvironment compares the lines of the word envi: the same names in the same order, and the
// same values for settings of the system. Bellwether adds the version of Go.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	ours, names := environment(t, sharedServer(t, target.Bellwether))
	if v := ours["java.version"]; !regexp.MustCompile(`^[1-9][0-9]*(\.[0-9]+)*$`).MatchString(v) {
		t.Errorf("java.version=%s", v)
	}
	if u, err := user.Current(); err != nil || ours["user.name"] != u.Username {
		t.Errorf("user.name=%s, want %+v, %v", ours["user.name"], u, err)
	}
	if !slices.Contains(target.Kinds(), target.Apache) {
		return
	}
	theirs, order := environment(t, sharedServer(t, target.Apache))
	if want := append(order, "go.version"); !slices.Equal(names, want) {
		t.Errorf("lines %q, want %q", names, want)
	}
	for _, name := range []string{"java.io.tmpdir", "java.compiler", "os.name", "os.arch", "os.version", "user.name", "user.home", "user.dir"} {
		if name == "java.io.tmpdir" && os.Getenv("TMPDIR") != "" {
			continue // Java ignores the variable
		}
		if ours[name] != theirs[name] {
			t.Errorf("%s=%s, Apache ZooKeeper has %s", name, ours[name], theirs[name])
		}
	}
	for _, name := range names {
		if ours[name] == "" {
			t.Errorf("%s is empty", name)
		}
	}
}

// watchWordsBody is the name of this body in the table of intended differences.
const watchWordsBody = "watch words"

// TestWatchWords compares the answers to wchs, wchc and wchp for watches of every kind, before
// and after they have fired or were removed.
func TestWatchWords(t *testing.T) {
	t.Parallel()
	saw := map[target.Kind][]string{}
	for _, kind := range target.Kinds() {
		saw[kind] = observe(t, target.StartFor(t, kind, target.Options{}), watchWordsBody, seeWatchWords)
	}
	if len(saw) == 2 {
		compareBody(t, watchWordsBody, saw)
	}
}

func seeWatchWords(s *seen) {
	s.create("/a", "")
	s.create("/b", "")
	r := dialRaw(s, nil)
	xid := int32(0)
	for _, step := range []struct {
		what string
		op   wire.OpCode
		req  wire.Record
	}{
		{"nothing", wire.OpSync, &wire.NullPathRequest{Path: wire.Text("/")}},
		{"data", wire.OpGetData, &wire.PathWatchRequest{Path: s.at("/a"), Watch: true}},
		{"missing", wire.OpExists, &wire.PathWatchRequest{Path: s.at("/none"), Watch: true}},
		{"children", wire.OpGetChildren, &wire.PathWatchRequest{Path: s.at("/b"), Watch: true}},
		{"data changed", wire.OpSetData, &wire.SetDataRequest{Path: s.at("/a"), Version: -1}},
		{"created", wire.OpCreate, &wire.CreateRequest{Path: s.at("/none"), ACL: wire.OpenACL()}},
		{"persistent", wire.OpAddWatch, &wire.AddWatchRequest{Path: s.at("/a")}},
		{"removed", wire.OpRemoveWatches, &wire.WatchesRequest{Path: s.at("/a"), Type: wire.WatcherAny}},
		{"recursive", wire.OpAddWatch, &wire.AddWatchRequest{Path: s.at("/a"), Mode: wire.WatchPersistentRecursive}},
		{"removed again", wire.OpRemoveWatches, &wire.WatchesRequest{Path: s.at("/a"), Type: wire.WatcherAny}},
	} {
		xid++
		r.send(xid, step.op, step.req)
		r.skipTo(xid)
		for _, word := range []string{"wchs", "wchc", "wchp"} {
			text, err := s.server.Word(word)
			s.say("%s: %s: %v %q", step.what, word, err, sessionIDs.ReplaceAllString(text, "ID"))
		}
	}
}

var sessionIDs = regexp.MustCompile("0x[0-9a-f]+")

// skipTo reads frames up to the reply with this xid.
func (r *rawConn) skipTo(xid int32) {
	r.s.t.Helper()
	for {
		b, err := wire.ReadFrame(r.in, nil, wire.FrameMax)
		var h wire.ReplyHeader
		if err == nil {
			err = wire.Decode(b, &h)
		}
		if err != nil {
			r.s.t.Fatal(err)
		}
		if h.Xid == xid {
			return
		}
	}
}
