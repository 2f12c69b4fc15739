package interop

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
)

// wordInputs are four-letter words as clients and scripts send them: bare, with
// a line's end, with bytes that belong to no word, cut in two, cut short.
var wordInputs = [][]string{
	{"ruok"}, {"ruok\n"}, {"ruok\r\n"}, {"ru", "ok"}, {"r", "u", "o", "k"}, {"ruokruok"}, {"ruok" + strings.Repeat("x", 100)},
	{"gtmk"}, {"gtmk\n"}, {"gt", "mk\n"}, {"gtmk\x00\x00\x00\x00\x00\x00\x01\x32"},
	{"stmk"}, {"stmk\n"}, {"st", "mk"}, {"stmk\x00\x00\x00\x00\x00\x00\x01"}, {"stmk\x00\x00\x00\x00\x00\x00\x01\x32"},
	{"conf"}, {"conf\n"}, {"co", "nf"}, {"hash"}, {"isro"}, {"wchs"}, {"mntr\r\n"}, {"dump"}, {"cons"},
	{"abcd"}, {"RUOK"}, {" ruok"}, {"\nruok"}, {"ruo"}, {""},
}

// wordAnswer sends the parts of a word, ends the sending side, and returns all
// that comes back before the server closes.
func wordAnswer(t *testing.T, s *target.Server, parts []string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(behaviourTimeout))
	for _, p := range parts {
		io.WriteString(conn, p) // a server that has closed already has answered
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

// TestWordInput shows that both servers answer the same bytes with the same
// text and close, whether the white list names a word or not.
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
