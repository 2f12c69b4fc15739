package page

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// compressMin is the size of the smallest body that is compressed, in bytes: less fits into one packet anyway.
const compressMin = 1400

// writers are compressors for pages, which are made for each request, so speed counts more than size.
var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // unreachable: the level is valid
	}
	return w
}}

// send writes an answer, compressed if the browser accepts that. A page contains no secret of the viewer that its
// size could betray: the cookie is not part of it, and requests from other sites come without the cookie.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) < compressMin || !acceptsGzip(r) {
		w.WriteHeader(status)
		_, _ = w.Write(body) // the browser may have gone
		return
	}
	h.Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z := writers.Get().(*gzip.Writer)
	defer writers.Put(z)
	z.Reset(w)
	_, _ = z.Write(body) // as above
	_ = z.Close()
}

// compressed returns a body in as few bytes as possible.
func compressed(body []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // unreachable: the level is valid
	}
	_, _ = z.Write(body) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// acceptsGzip reports whether a browser accepts gzip.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(quality, "q="), "0.") != "" || quality == ""
		}
	}
	return false
}
