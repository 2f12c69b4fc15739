package admin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bellwether/internal/server"
)

// argument returns the first value of a parameter in the query, and whether it is given.
func (c *call) argument(name string) (string, bool) {
	all, given := c.http.URL.Query()[name]
	if !given {
		return "", false
	}
	return all[0], true
}

// stream is an answer that is not JSON.
type stream struct {
	body    io.ReadCloser // nil: the answer is JSON
	size    int64
	headers [][2]string // headers of the answer, also if it is JSON
}

// Commands returns the handler of ZooKeeper's AdminServer commands below a path such as
// /commands. An answer waits at most stall for a client that does not read; 0: without limit.
func (a *Admin) Commands(s *server.Server, path string, stall time.Duration) http.Handler {
	h := &commandHandler{admin: a, server: s, path: path, stall: stall, large: make(chan struct{}, 1)}
	return h
}

type commandHandler struct {
	admin  *Admin
	server *server.Server
	path   string
	stall  time.Duration
	large  chan struct{} // has an element while an answer of a large command is built and sent
}

func (h *commandHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, h.path), "/")
	isList := r.URL.Path == h.path || r.URL.Path == h.path+"/"
	cmd := find(name)
	if !allowMethod(w, r, cmd != nil && cmd.post) {
		return
	}
	if isList {
		h.list(w)
		return
	}
	if cmd != nil && cmd.resets && fromOtherSite(r) {
		http.Error(w, "a web page of another site may not use this command", http.StatusForbidden)
		return
	}
	c := &call{http: r, server: h.server, code: http.StatusOK, body: h.patientReader(w, r)}
	o, name := h.run(c, name, cmd)
	if c.turn {
		defer func() { <-h.large }()
	}
	if c.stream.body != nil {
		defer c.stream.body.Close()
		h.send(w, c)
		return
	}
	h.write(w, c, answer(o, name, c.err))
}

// allowMethod answers a request with a method that the command does not have, and returns
// false. ZooKeeper 3.8 forbids TRACE; 3.9 answers some wrong methods with 500.
func allowMethod(w http.ResponseWriter, r *http.Request, post bool) bool {
	allowed := []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	if post {
		allowed = []string{http.MethodPost, http.MethodOptions}
	}
	switch {
	case r.Method == http.MethodTrace:
		w.WriteHeader(http.StatusForbidden)
		return false
	case !slices.Contains(allowed, r.Method):
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		http.Error(w, fmt.Sprintf("the method %.20q is not allowed: use a method that the header Allow names", r.Method), http.StatusMethodNotAllowed)
		return false
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return false
	}
	return true
}

// fromOtherSite reports whether the browser says that a web page of another site has caused the request.
func fromOtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// list sends the links to all commands.
func (h *commandHandler) list(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	for _, c := range commands {
		fmt.Fprintf(w, "<a href=\"%[1]s/%[2]s\">%[2]s</a>\n<br/>\n", h.path, c.names[0])
	}
}

// largeMax is how long a large command waits for another one.
const largeMax = 5 * time.Second

// run carries out a command and returns its fields, and the name for "command": the primary
// name, or the requested one if the command is not carried out.
func (h *commandHandler) run(c *call, name string, cmd *command) (object, string) {
	switch {
	case cmd == nil:
		c.err = "Unknown command: " + name
		return nil, name
	case !h.serves(cmd):
		c.err = notServing
		return nil, name
	case cmd.guarded && !c.permitted():
		return nil, name
	case cmd.large:
		if c.turn = h.takeTurn(c.http.Context()); !c.turn {
			c.code, c.err = http.StatusServiceUnavailable, "another request for a long list is in process; try again"
			return nil, name
		}
	}
	return cmd.run(h.admin, c), cmd.names[0]
}

// serves reports whether the server's state allows a command.
func (h *commandHandler) serves(cmd *command) bool {
	return cmd.idle || h.server.Loaded() && h.server.Serving()
}

// takeTurn waits until no other large command is in process.
func (h *commandHandler) takeTurn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, largeMax)
	defer cancel()
	select {
	case h.large <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// answer adds the fields that every answer has.
func answer(o object, name, err string) object {
	if len(o) == 1 && o[0].name == "error" {
		return append(o, field{"command", name})
	}
	o = append(o, field{"command", name})
	if err != "" {
		return append(o, field{"error", err})
	}
	return append(o, field{"error", nil})
}

// write sends an answer in JSON. It does not keep the text of a large answer in memory.
func (h *commandHandler) write(w http.ResponseWriter, c *call, o object) {
	head := w.Header()
	head.Set("Content-Type", "application/json")
	for _, l := range c.stream.headers {
		head[l[0]] = []string{l[1]} // ZooKeeper's spelling
	}
	if c.turn {
		w.WriteHeader(c.code)
		out := bufio.NewWriterSize(h.patient(w), chunk)
		writeJSON(out, o, "")
		out.Flush()
		return
	}
	var text bytes.Buffer
	out := bufio.NewWriter(&text)
	writeJSON(out, o, "")
	out.Flush()
	head.Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(c.code)
	w.Write(text.Bytes())
}

// chunk is how much of a long answer is written at a time, in bytes.
const chunk = 64 << 10

// send sends an answer that is not JSON.
func (h *commandHandler) send(w http.ResponseWriter, c *call) {
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Length", strconv.FormatInt(c.stream.size, 10))
	for _, l := range c.stream.headers {
		head[l[0]] = []string{l[1]}
	}
	w.WriteHeader(c.code)
	if c.http.Method == http.MethodHead {
		return
	}
	_, _ = io.CopyBuffer(struct{ io.Writer }{h.patient(w)}, struct{ io.Reader }{c.stream.body}, make([]byte, chunk)) // an error means that the client has gone
}

// patient returns a writer that restarts the client's time limit with each chunk.
func (h *commandHandler) patient(w http.ResponseWriter) io.Writer {
	if h.stall <= 0 {
		return w
	}
	return &patientWriter{w: w, control: http.NewResponseController(w), stall: h.stall}
}

// patientReader returns a reader of the body that restarts the client's time limit with each read.
func (h *commandHandler) patientReader(w http.ResponseWriter, r *http.Request) io.Reader {
	return &patientReader{r: r.Body, control: http.NewResponseController(w), stall: cmp.Or(h.stall, stallDefault)}
}

// stallDefault is how long a client may send nothing of a body if no idle timeout is configured.
const stallDefault = time.Minute

type patientReader struct {
	r       io.Reader
	control *http.ResponseController
	stall   time.Duration
}

// Read reads a part of the body.
func (p *patientReader) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(p.stall)) // only the writers of tests have no deadlines
	return p.r.Read(b)
}

type patientWriter struct {
	w       io.Writer
	control *http.ResponseController
	stall   time.Duration
}

// Write sends a chunk.
func (p *patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.stall)) // only the writers of tests have no deadlines
	return p.w.Write(b)
}
