package page

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"bellwether/internal/admin/access"
	"bellwether/internal/server"
)

// change is a form by which operators change something.
type change struct {
	title  string   // the question that asks for confirmation: Close this session?
	fields []string // names of the form's fields
	effect string   // what the change does, shown with the question
	button string
	danger bool
	done   string // what the page says afterwards
	do     func(p *Page, ctx context.Context, o server.Operator, f url.Values) error
}

// changes are the forms by name.
var changes = map[string]change{
	"transfer": {"Transfer leadership?", []string{"to"}, "The leader passes leadership on. Clients stay connected, and their writes wait for a moment.", "Transfer leadership", false,
		"Leadership was transferred.", (*Page).transfer},
	"snapshot": {"Take a snapshot?", nil, "The server writes a snapshot of its tree to its disk, beside its work.", "Take the snapshot", false, "The snapshot was written.",
		func(p *Page, ctx context.Context, o server.Operator, _ url.Values) error {
			_, err := p.o.Changes.Snapshot(ctx, o)
			return err
		}},
	"kick": {"Kick this bid?", []string{"bid", "token", "who"}, "The bid is deleted, and the next client in line takes its place. The client that held it may go on until it notices; only resources that check the token are protected.",
		"Kick the bid", true, "The bid was deleted.",
		func(p *Page, ctx context.Context, o server.Operator, f url.Values) error {
			return p.o.Changes.Kick(ctx, o, f.Get("bid"), f.Get("token"))
		}},
	"close": {"Close this session?", []string{"session", "address"}, "The session ends at once, and its ephemeral znodes are deleted. The client sees that its session has expired.", "Close the session", true,
		"The session was closed.",
		func(p *Page, _ context.Context, o server.Operator, f url.Values) error {
			return p.o.Changes.CloseSession(o, f.Get("session"))
		}},
	"set": {"Replace the data?", []string{"path", "version", "encoding", "crlf", "data"}, "The new data replaces the old data, unless the znode has changed since you looked at it. Watches on it fire.", "Set the data", false,
		"The data was set.", (*Page).setData},
	"create": {"Create this znode?", []string{"path", "name", "kind", "encoding", "data"}, "The znode is created. Anyone may read and change it.", "Create the znode", false,
		"The znode was created.", (*Page).createNode},
	"delete": {"Delete this znode?", []string{"path", "version"}, "The znode is deleted, unless it has changed since you looked at it, or has children.", "Delete the znode", true,
		"The znode was deleted.",
		func(p *Page, ctx context.Context, o server.Operator, f url.Values) error {
			version, err := versionOf(f)
			if err != nil {
				return err
			}
			return p.o.Changes.Delete(ctx, o, f.Get("path"), version)
		}},
}

// dataMax is the size of the largest form with data, in bytes.
const dataMax = 4 << 20

// field is one field of a form that is to be confirmed.
type field struct{ Name, Value string }

// confirmContent holds what the page of a confirmation shows.
type confirmContent struct {
	Name, Title, Effect, Button, Back string
	Danger                            bool
	Fields                            []field
}

// change carries out a change, or asks for its confirmation first.
func (p *Page) change(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("change")
	c, ok := changes[name]
	viewer := access.ViewerOf(r.Context())
	r.Body = http.MaxBytesReader(w, r.Body, dataMax)
	err := r.ParseForm()
	var large *http.MaxBytesError
	switch {
	case !ok:
		err = &Problem{Status: http.StatusNotFound, What: "There is no such change.", Do: "Use the forms of the pages."}
	case !viewer.MayChange():
		err = &Problem{Status: http.StatusForbidden, What: "Changes need an operator who is signed in.", Do: "Sign in first."}
	case errors.As(err, &large):
		err = &Problem{Status: http.StatusRequestEntityTooLarge, What: fmt.Sprintf("The form is larger than %d bytes.", large.Limit), Do: "Use the command bellwether set."}
	case err != nil:
		err = &Problem{Status: http.StatusBadRequest, What: "The form cannot be read.", Do: "Go back and send it again."}
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	back := localPath(r.PostForm.Get("back"))
	if r.PostForm.Get("confirmed") != "yes" {
		p.confirm(w, r, name, back)
		return
	}
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	if err := c.do(p, r.Context(), server.Operator{Name: viewer.Operator, Addr: from}, r.PostForm); err != nil {
		p.fail(w, r, err)
		return
	}
	http.Redirect(w, r, withDone(back, name), http.StatusSeeOther)
}

// confirm shows what will be changed, and asks the operator to confirm it.
func (p *Page) confirm(w http.ResponseWriter, r *http.Request, name, back string) {
	c := changes[name]
	content := confirmContent{Name: name, Title: c.title, Effect: c.effect, Button: c.button, Danger: c.danger, Back: back}
	for _, f := range c.fields {
		content.Fields = append(content.Fields, field{f, r.PostForm.Get(f)})
	}
	p.render(w, r, http.StatusOK, confirmSheet, content)
}

// withDone adds the name of a completed change to an address, so that the page at that address can say
// what was done.
func withDone(to, name string) string {
	u, err := url.Parse(to)
	if err != nil {
		return "/"
	}
	q := u.Query()
	q.Set("done", name)
	u.RawQuery = q.Encode()
	return u.RequestURI()
}

// doneText returns what the viewer has just changed, in words.
func doneText(r *http.Request) string { return changes[r.URL.Query().Get("done")].done }

func (p *Page) transfer(ctx context.Context, o server.Operator, f url.Values) error {
	var to *int64
	if text := f.Get("to"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return &Problem{Status: http.StatusBadRequest, What: "The id of the next leader is no number.", Where: text, Do: "Choose a server from the list."}
		}
		to = &id
	}
	_, err := p.o.Changes.Transfer(ctx, o, to)
	return err
}

// versionOf returns the version in a form.
func versionOf(f url.Values) (int32, error) {
	v, err := strconv.ParseInt(f.Get("version"), 10, 32)
	if err != nil {
		return 0, &Problem{Status: http.StatusBadRequest, What: "The version is no number.", Where: f.Get("version"), Do: "Go back to the znode and send the form again."}
	}
	return int32(v), nil
}

// dataOf returns the data in a form: bytes in hexadecimal if the field encoding says so, and text otherwise. A browser
// sends every line end of a text as CR LF. dataOf turns them into LF, unless the field crlf says that the data had CR
// LF before.
func dataOf(f url.Values) ([]byte, error) {
	text := f.Get("data")
	switch {
	case f.Get("encoding") == encodingHex:
		b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, &Problem{Status: http.StatusBadRequest, What: "The data is not hexadecimal: " + strings.TrimPrefix(err.Error(), "encoding/hex: ") + ".",
				Where: text, Do: "Go back, and write two digits of 0 to 9 and a to f for each byte. Spaces and line ends do not count."}
		}
		return b, nil
	case f.Get("crlf") == "":
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return []byte(text), nil
}

func (p *Page) setData(ctx context.Context, o server.Operator, f url.Values) error {
	version, err := versionOf(f)
	if err != nil {
		return err
	}
	data, err := dataOf(f)
	if err != nil {
		return err
	}
	_, err = p.o.Changes.Set(ctx, o, f.Get("path"), data, version)
	return err
}

func (p *Page) createNode(ctx context.Context, o server.Operator, f url.Values) error {
	data, err := dataOf(f)
	if err != nil {
		return err
	}
	path := strings.TrimSuffix(f.Get("path"), "/") + "/" + f.Get("name")
	_, err = p.o.Changes.Create(ctx, o, path, data, f.Get("kind"))
	return err
}
