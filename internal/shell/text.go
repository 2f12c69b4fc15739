package shell

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"bellwether/wire"
)

// Instant formats milliseconds since 1970 as RFC 3339 in UTC.
func Instant(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// printStat prints a stat block with the labels of ZooKeeper's CLI.
func printStat(w io.Writer, s wire.Stat) {
	fmt.Fprintf(w, "cZxid = %v\nctime = %s\nmZxid = %v\nmtime = %s\npZxid = %v\n",
		s.Czxid, Instant(s.Ctime), s.Mzxid, Instant(s.Mtime), s.Pzxid)
	fmt.Fprintf(w, "cversion = %d\ndataVersion = %d\naclVersion = %d\nephemeralOwner = %v\ndataLength = %d\nnumChildren = %d\n",
		s.Cversion, s.Version, s.Aversion, s.EphemeralOwner, s.DataLength, s.NumChildren)
}

// statJSON is a stat in a form for programs.
type statJSON struct {
	Czxid          string `json:"czxid"`
	Mzxid          string `json:"mzxid"`
	Pzxid          string `json:"pzxid"`
	Ctime          string `json:"ctime"`
	Mtime          string `json:"mtime"`
	Version        int32  `json:"version"`
	Cversion       int32  `json:"cversion"`
	Aversion       int32  `json:"aversion"`
	EphemeralOwner string `json:"ephemeral_owner,omitempty"`
	DataLength     int32  `json:"data_length"`
	NumChildren    int32  `json:"num_children"`
}

func statOf(s wire.Stat) *statJSON {
	j := &statJSON{
		Czxid: s.Czxid.String(), Mzxid: s.Mzxid.String(), Pzxid: s.Pzxid.String(),
		Ctime: Instant(s.Ctime), Mtime: Instant(s.Mtime),
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
	if s.EphemeralOwner != 0 {
		j.EphemeralOwner = s.EphemeralOwner.String()
	}
	return j
}

// DataJSON is a znode's data in a form for programs: text if it is UTF-8, base64
// otherwise, null if the znode has no data.
type DataJSON struct {
	Data       *string `json:"data"`
	DataBase64 *string `json:"data_base64,omitempty"`
}

// DataOf returns data as DataJSON.
func DataOf(b []byte) DataJSON {
	if b == nil {
		return DataJSON{}
	}
	if utf8.Valid(b) {
		s := string(b)
		return DataJSON{Data: &s}
	}
	s := base64.StdEncoding.EncodeToString(b)
	return DataJSON{DataBase64: &s}
}

// ACLJSON is an ACL entry in a form for programs.
type ACLJSON struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Perms  string `json:"perms"`
}

// ACLsOf returns an ACL as JSON entries.
func ACLsOf(list []wire.ACL) []ACLJSON {
	out := make([]ACLJSON, 0, len(list))
	for _, a := range list {
		out = append(out, ACLJSON{a.ID.Scheme, a.ID.ID, permText(a.Perms)})
	}
	return out
}

// print prints the result of a command: v as one line of JSON if the user asks for JSON, otherwise text as a line.
func (a *app) print(v any, text string) error {
	if a.json() {
		return printJSON(a.out, v)
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

// printJSON prints a value as one line of JSON.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// jsonText returns a value as one line of JSON.
func jsonText(v any) string {
	var b strings.Builder
	printJSON(&b, v) // a Builder takes everything
	return b.String()
}
