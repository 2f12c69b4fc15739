package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"bellwether/internal/admin/theatre"
)

//go:embed assets
var assetFiles embed.FS

// assetsPath is the path below which pages find the files that they load.
const assetsPath = "/assets/"

// asset is a file that pages load. The page names it with its version, so that a browser
// may keep it for ever.
type asset struct {
	kind    string // media type
	version string
	body    []byte
	small   []byte // the body, compressed
}

// assets are all files by name.
var assets = readAssets()

func readAssets() map[string]asset {
	all := map[string]asset{}
	files, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		panic(err) // unreachable: the directory is part of the program
	}
	for _, f := range files {
		b, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			panic(err) // unreachable, as above
		}
		if f.Name() == "theatre.css" {
			b = append([]byte(theatre.Style), b...) // the style of the drawings, and of the page around them
		}
		sum := sha256.Sum256(b)
		all[f.Name()] = asset{kindOf(f.Name()), hex.EncodeToString(sum[:6]), b, compressed(b)}
	}
	return all
}

// kindOf returns the media type of a file. It names the types in use itself, because the
// configuration of the system can change the types that package mime returns.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// assetURL returns the address of a file, with its version.
func assetURL(name string) string { return assetsPath + name + "?v=" + assets[name].version }

// serveAsset answers a request for a file.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets[r.PathValue("name")]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("ETag", `"`+a.version+`"`)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), a.version) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.body
	h.Add("Vary", "Accept-Encoding")
	if len(a.body) >= compressMin && acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = a.small
	}
	_, _ = w.Write(body) // the browser may have gone
}
