package shell

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"bellwether/wire"
)

// instant prints milliseconds since 1970 as RFC 3339 in UTC.
func instant(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// printStat prints a stat block with the labels of ZooKeeper's CLI.
func printStat(w io.Writer, s wire.Stat) {
	fmt.Fprintf(w, "cZxid = %v\nctime = %s\nmZxid = %v\nmtime = %s\npZxid = %v\n",
		s.Czxid, instant(s.Ctime), s.Mzxid, instant(s.Mtime), s.Pzxid)
	fmt.Fprintf(w, "cversion = %d\ndataVersion = %d\naclVersion = %d\nephemeralOwner = %v\ndataLength = %d\nnumChildren = %d\n",
		s.Cversion, s.Version, s.Aversion, s.EphemeralOwner, s.DataLength, s.NumChildren)
}

// statJSON is a stat for programs.
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
		Ctime: instant(s.Ctime), Mtime: instant(s.Mtime),
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
	if s.EphemeralOwner != 0 {
		j.EphemeralOwner = s.EphemeralOwner.String()
	}
	return j
}

// dataJSON is a znode's data for programs: text where it is UTF-8, base64
// otherwise, null where the znode has none.
type dataJSON struct {
	Data       *string `json:"data"`
	DataBase64 *string `json:"data_base64,omitempty"`
}

func dataOf(b []byte) dataJSON {
	if b == nil {
		return dataJSON{}
	}
	if utf8.Valid(b) {
		s := string(b)
		return dataJSON{Data: &s}
	}
	s := base64.StdEncoding.EncodeToString(b)
	return dataJSON{DataBase64: &s}
}

// aclJSON is an ACL entry for programs.
type aclJSON struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Perms  string `json:"perms"`
}

func aclsOf(list []wire.ACL) []aclJSON {
	out := make([]aclJSON, 0, len(list))
	for _, a := range list {
		out = append(out, aclJSON{a.ID.Scheme, a.ID.ID, permText(a.Perms)})
	}
	return out
}

// printJSON prints one value as one line, which jq and scripts like best.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
