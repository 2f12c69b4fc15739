package page

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"bellwether/internal/admin/access"
	"bellwether/internal/admin/view"
	"bellwether/internal/server"
	"bellwether/zk"
)

// operator is a viewer who is signed in.
var operator = access.Viewer{Loopback: true, Operator: "ada"}

func client(t *testing.T, s *server.Server) *zk.Client {
	t.Helper()
	zc, err := zk.Connect(t.Context(), s.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { zc.Close(context.Background()) })
	return zc
}

func create(t *testing.T, zc *zk.Client, path string, data []byte, opts ...zk.CreateOption) string {
	t.Helper()
	made, _, err := zc.Create(t.Context(), path, data, opts...)
	if err != nil {
		t.Fatalf("%q: %v", path, err)
	}
	return made
}

// show returns the body of a page, which must have a status.
func show(t *testing.T, p *Page, v access.Viewer, target string, status int) string {
	t.Helper()
	r := ask(p, v, "GET", target, "")
	body := bodyOf(t, r)
	if r.StatusCode != status {
		t.Fatalf("%s: %s\n%s", target, r.Status, body)
	}
	if at := forbidden(body); at != "" {
		t.Errorf("%s contains %q", target, at)
	}
	return body
}

// TestHostileNamesAndDataAreShown shows that scripts, marks that change the direction of text, control characters and
// any other text in names and data are shown as text, in lists, searches and their own pages.
func TestHostileNamesAndDataAreShown(t *testing.T) {
	s := serve(t)
	p, zc := pageOf(t, s), client(t, s)
	for name, shown := range map[string]string{
		"<script>alert(1)<": "<script>alert(1)<", `"onclick="alert(1)`: `"onclick="alert(1)`, "\u202egnp.exe": `\u202egnp.exe`,
		"日本": "日本", "a b": "a b", "x\u200by": `x\u200by`, "&lt;b&gt;": "&lt;b&gt;", "javascript:alert(1)": "javascript:alert(1)",
		strings.Repeat("n", 5000): strings.Repeat("n", visibleMax) + "… (4.9 KiB in all)",
	} {
		path := "/" + name
		create(t, zc, path, []byte("<img src=x onerror=alert(1)>"+name))
		own := show(t, p, operator, "/tree?path="+url.QueryEscape(path), 200)
		for what, body := range map[string]string{"list": show(t, p, looker, "/tree", 200), "page": own, "history": show(t, p, looker, "/tree/history?path="+url.QueryEscape(path), 200),
			"search": show(t, p, looker, "/tree/search?text="+url.QueryEscape(name[:min(len(name), 300)]), 200)} {
			if what == "search" && len(name) > 300 {
				continue // the page cuts the text of the search
			}
			if !strings.Contains(html.UnescapeString(body), shown) || strings.Contains(body, "<img src=x") || strings.Contains(body, "<script>alert") {
				t.Errorf("%s of %q:\n%s", what, name, body)
			}
		}
	}
}

// TestLargeZnodes shows that only the beginning of a znode of 1 MB is shown, whether it is text or not, and that the
// children of a znode with 100,000 children are shown page by page.
func TestLargeZnodes(t *testing.T) {
	s := serve(t)
	p, zc := pageOf(t, s), client(t, s)
	create(t, zc, "/text", []byte(strings.Repeat("<", 1_000_000)))
	create(t, zc, "/bytes", make([]byte, 1_000_000))
	for _, path := range []string{"/text", "/bytes"} {
		if body := show(t, p, operator, "/tree?path="+path, 200); !strings.Contains(body, "976.6 KiB, the first 4.0 KiB are shown") || len(body) > 64<<10 || strings.Contains(body, "Set the data</button>") {
			t.Errorf("%s: %d bytes\n%.3000s", path, len(body), body)
		}
	}
	const children = 100_000
	create(t, zc, "/many", nil)
	for i := 0; i < children; {
		var ops []zk.Op
		for range 5000 {
			ops = append(ops, zk.CreateOp(fmt.Sprintf("/many/child-%06d", i), nil))
			i++
		}
		if _, err := zc.Multi(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	body := show(t, p, looker, "/tree?path=/many", 200)
	t.Logf("the first page of %d children took %v and has %d bytes", children, time.Since(began), len(body))
	if !strings.Contains(body, "100\u202f000 in all") || !strings.Contains(body, "child-000099") || strings.Contains(body, "child-000100<") || len(body) > 64<<10 {
		t.Errorf("%d bytes: %.3000s", len(body), body)
	}
	if body := show(t, p, looker, "/tree?path=/many&prefix=child-0999&after=child-099950", 200); !strings.Contains(body, "child-099951") || strings.Contains(body, "Next page") {
		t.Errorf("%.3000s", body)
	}
	if body := show(t, p, looker, "/tree/search?text=child-09995", 200); strings.Count(body, `href="/tree?path=%2fmany%2fchild-`) != 10 {
		t.Errorf("%.3000s", body)
	}
}

// TestHiddenZnodes shows that access-control lists hide znodes from viewers who are not signed in, but not from
// operators.
func TestHiddenZnodes(t *testing.T) {
	s := serve(t)
	p, zc := pageOf(t, s), client(t, s)
	create(t, zc, "/secret", []byte("password"), zk.ACLs{{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: "a:b"}}})
	for target, status := range map[string]int{"/tree?path=/secret": 403, "/tree/history?path=/secret": 403, "/recipes?path=/secret": 403, "/tree/search?path=/secret&text=b": 403, "/tree?path=/missing": 404} {
		if body := show(t, p, looker, target, status); strings.Contains(body, "password") || !strings.Contains(body, `role="alert"`) {
			t.Errorf("%s:\n%s", target, body)
		}
	}
	if body := show(t, p, operator, "/tree?path=/secret", 200); !strings.Contains(body, "password") {
		t.Errorf("for an operator:\n%s", body)
	}
}

// post sends the form of a change.
func post(t *testing.T, p *Page, v access.Viewer, change string, fields ...string) *http.Response {
	t.Helper()
	f := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		f.Set(fields[i], fields[i+1])
	}
	return ask(p, v, "POST", "/change/"+change, f.Encode())
}

// TestChangesAreConfirmed shows that a form first leads to a page that says what will be changed, that only the answer
// to that page changes it, and that the page then says so.
func TestChangesAreConfirmed(t *testing.T) {
	s := serve(t)
	p, zc := pageOf(t, s), client(t, s)
	create(t, zc, "/a", []byte("one\ntwo\n"))
	fields := []string{"path", "/a", "version", "0", "data", "one\r\nthree\r\n", "back", "/tree?path=%2Fa"}
	body := bodyOf(t, post(t, p, operator, "set", fields...))
	if !strings.Contains(body, "Replace the data?") || !strings.Contains(body, `name="confirmed" value="yes"`) || !strings.Contains(body, `name="path" value="/a"`) {
		t.Errorf("%s", body)
	}
	if data, _, err := zc.Get(t.Context(), "/a"); err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("before it is confirmed: %q %v", data, err)
	}
	r := post(t, p, operator, "set", append(fields, "confirmed", "yes")...)
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/tree?done=set&path=%2Fa" {
		t.Fatalf("%s %v\n%s", r.Status, r.Header, bodyOf(t, r))
	}
	if data, _, err := zc.Get(t.Context(), "/a"); err != nil || string(data) != "one\nthree\n" {
		t.Errorf("%q %v", data, err)
	}
	if body := show(t, p, operator, r.Header.Get("Location"), 200); !strings.Contains(body, `<p class="note good" role="status">The data was set.</p>`) {
		t.Errorf("%s", body)
	}
	if r := post(t, p, operator, "set", append(fields, "confirmed", "yes")...); r.StatusCode != 409 || !strings.Contains(bodyOf(t, r), "changed meanwhile") {
		t.Errorf("the same version again: %s", r.Status)
	}
	if r := post(t, p, operator, "create", "path", "/a", "name", "b", "kind", "persistent", "data", "", "confirmed", "yes"); r.StatusCode != 303 {
		t.Errorf("create: %s %s", r.Status, bodyOf(t, r))
	}
	if r := post(t, p, operator, "delete", "path", "/a", "version", "1", "confirmed", "yes"); r.StatusCode != 409 || !strings.Contains(bodyOf(t, r), "Delete its children first.") {
		t.Errorf("delete of a parent: %s", r.Status)
	}
	if r := post(t, p, operator, "delete", "path", "/a/b", "version", "0", "confirmed", "yes", "back", "https://evil.example/"); r.StatusCode != 303 || r.Header.Get("Location") != "/?done=delete" {
		t.Errorf("delete: %s %v", r.Status, r.Header)
	}
}

var (
	editor   = regexp.MustCompile(`(?s)name="encoding" value="([a-z]*)"><input type="hidden" name="crlf" value="(1?)">.*<textarea id="set-data"[^>]*>\n(.*?)</textarea>`)
	lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n") // as a browser reads a page
)

// TestEditsKeepAllData shows that the form of a znode, sent as a browser sends it, leaves data of any kind as it is, that
// bytes are edited in hexadecimal, and that the page says how to edit data of which it shows only the beginning.
func TestEditsKeepAllData(t *testing.T) {
	s := serve(t)
	p, zc := pageOf(t, s), client(t, s)
	for i, data := range []string{"", "text", "\n\nlines\n", "a\r\nb\r\n", "a\r\nb\nc", "a\rb", "\r\n\r", "\x00\x01\xff\n\r", "caf\xe9", "\x1b[31m\u0085</textarea>", strings.Repeat("\xff\x00", view.DataShown/2)} {
		path := fmt.Sprintf("/any-%d", i)
		create(t, zc, path, []byte(data))
		found := editor.FindStringSubmatch(show(t, p, operator, "/tree?path="+path, 200))
		if found == nil {
			t.Errorf("%.20q has no form", data)
			continue
		}
		sent := strings.ReplaceAll(lineEnds.Replace(html.UnescapeString(found[3])), "\n", "\r\n")
		if r := post(t, p, operator, "set", "path", path, "version", "0", "encoding", found[1], "crlf", found[2], "data", sent, "confirmed", "yes"); r.StatusCode != 303 {
			t.Errorf("%.20q: %s %s", data, r.Status, bodyOf(t, r))
		}
		if now, _, err := zc.Get(t.Context(), path); err != nil || string(now) != data {
			t.Errorf("%.20q has become %.20q as %s: %v", data, now, found[1], err)
		}
	}
	create(t, zc, "/long", make([]byte, view.DataShown+1))
	if body := show(t, p, operator, "/tree?path=/long", 200); editor.MatchString(body) || !strings.Contains(body, "bellwether set -v 0 PATH - &lt; FILE") {
		t.Errorf("%s", body)
	}
	if r := post(t, p, operator, "create", "path", "/", "name", "made", "encoding", "hex", "data", "00 ff\r\n0A", "confirmed", "yes"); r.StatusCode != 303 {
		t.Errorf("%s %s", r.Status, bodyOf(t, r))
	}
	if data, _, err := zc.Get(t.Context(), "/made"); err != nil || string(data) != "\x00\xff\n" {
		t.Errorf("%q %v", data, err)
	}
}

// TestChangesNeedAnOperator shows that a viewer who is not signed in, or off this machine without TLS, changes nothing and
// gets no forms.
func TestChangesNeedAnOperator(t *testing.T) {
	s := serve(t)
	p, zc := pageOf(t, s), client(t, s)
	create(t, zc, "/a", nil)
	for _, v := range []access.Viewer{{}, looker, {Operator: "ada"}} {
		for name := range changes {
			if r := post(t, p, v, name, "path", "/a", "version", "0", "confirmed", "yes"); r.StatusCode != http.StatusForbidden {
				t.Errorf("%+v %s: %s", v, name, r.Status)
			}
		}
		if body := show(t, p, v, "/tree?path=/a", 200); strings.Contains(body, "/change/") {
			t.Errorf("%+v: %s", v, body)
		}
	}
	if _, ok, err := zc.Exists(t.Context(), "/a"); !ok || err != nil {
		t.Error(ok, err)
	}
	for _, c := range []struct {
		change, field, value string
		status               int
	}{{"nothing", "", "", 404}, {"set", "version", "x", 400}, {"transfer", "to", "x", 400}, {"close", "session", "x", 400}, {"set", "data", strings.Repeat("x", dataMax), 413},
		{"create", "data", strings.Repeat("x", 2<<20), 400}, {"set", "data", "0g", 400}, {"set", "data", "0", 400}, {"set", "path", "/zookeeper/config", 400}} {
		encoding := map[bool]string{true: "hex", false: "text"}[len(c.value) < 3]
		if r := post(t, p, operator, c.change, "path", "/a", "name", "b", "version", "-1", "encoding", encoding, c.field, c.value, "confirmed", "yes"); r.StatusCode != c.status || !strings.Contains(bodyOf(t, r), `role="alert"`) {
			t.Errorf("%s with a wrong %s: %s", c.change, c.field, r.Status)
		}
	}
}

// TestSessionsAndRecipesAreChanged shows that operators kick bids and close sessions from the forms of their pages.
func TestSessionsAndRecipesAreChanged(t *testing.T) {
	s := serve(t)
	p, zc := pageOf(t, s), client(t, s)
	create(t, zc, "/lock", nil)
	bid := create(t, zc, "/lock/lock-", []byte("host-a"), zk.Ephemeral, zk.Sequential)
	body := show(t, p, operator, "/recipes", 200)
	st, _, err := zc.Exists(t.Context(), bid)
	if err != nil || !strings.Contains(body, "host-a") || !strings.Contains(body, `name="token" value="`+st.Czxid.String()+`"`) {
		t.Fatalf("%v\n%s", err, body)
	}
	if r := post(t, p, operator, "kick", "bid", bid, "token", st.Czxid.String(), "back", "/recipes", "confirmed", "yes"); r.StatusCode != 303 || r.Header.Get("Location") != "/recipes?done=kick" {
		t.Errorf("kick: %s %s", r.Status, bodyOf(t, r))
	}
	if body := show(t, p, looker, "/recipes?done=kick", 200); !strings.Contains(body, "The bid was deleted.") || !strings.Contains(body, "No recipe is in use") {
		t.Errorf("%s", body)
	}
	id := zc.Session().ID
	until(t, "the operator's own session has ended", func() bool {
		return strings.Contains(show(t, p, operator, "/sessions", 200), "1\u00a0session<")
	})
	if body := show(t, p, operator, "/sessions", 200); !strings.Contains(body, `name="session" value="`+id.String()+`"`) {
		t.Errorf("%s", body)
	}
	if r := post(t, p, operator, "close", "session", id.String(), "back", "/sessions", "confirmed", "yes"); r.StatusCode != 303 {
		t.Errorf("close: %s %s", r.Status, bodyOf(t, r))
	}
	if _, there := s.Tree().Session(id); there {
		t.Error("the session is open")
	}
}
