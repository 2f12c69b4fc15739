package main

import (
	"strconv"

	"bellwether/internal/record"
	"bellwether/internal/shell"
	"bellwether/internal/store"
	"bellwether/wire"
)

// txnJSON is a transaction in a form for programs.
type txnJSON struct {
	Offset  int64  `json:"offset"`
	Zxid    string `json:"zxid"`
	Time    string `json:"time"`
	Session string `json:"session"`
	Cxid    int32  `json:"cxid"`
	bodyJSON
	Digest string `json:"digest,omitempty"`
}

func txnOf(e store.LogEntry) txnJSON {
	t := e.Txn
	j := txnJSON{
		Offset: e.Offset, Zxid: t.Zxid.String(), Time: shell.Instant(t.Time), Session: t.Session.String(), Cxid: t.Cxid,
		bodyJSON: bodyOf(t.Type, t.Body),
	}
	if t.Digest != nil {
		j.Digest = digestText(t.Digest.Tree)
	}
	return j
}

// digestText returns a digest in the form that the other commands and the four-letter words use.
func digestText(d uint64) string { return strconv.FormatInt(int64(d), 10) }

// bodyJSON is the body of a transaction. It omits the fields that a transaction of its type does not have.
type bodyJSON struct {
	Type string `json:"type"`
	Path string `json:"path,omitempty"`
	*shell.DataJSON
	ACL            []shell.ACLJSON `json:"acl,omitempty"`
	Ephemeral      bool            `json:"ephemeral,omitempty"`
	ParentCversion *int32          `json:"parent_cversion,omitempty"`
	TTLMS          int64           `json:"ttl_ms,omitempty"`
	Version        *int32          `json:"version,omitempty"`
	Error          int32           `json:"error,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	TimeoutMS      int32           `json:"timeout_ms,omitempty"`
	Paths          []string        `json:"paths,omitempty"`
	Ops            []bodyJSON      `json:"ops,omitempty"`
}

func bodyOf(op wire.OpCode, b record.TxnBody) bodyJSON {
	j := bodyJSON{Type: op.String()}
	switch t := b.(type) {
	case *record.CreateTxn:
		j.create(t.Path, t.Data, t.ACL, t.ParentCversion)
		j.Ephemeral = t.Ephemeral
	case *record.CreateContainerTxn:
		j.create(t.Path, t.Data, t.ACL, t.ParentCversion)
	case *record.CreateTTLTxn:
		j.create(t.Path, t.Data, t.ACL, t.ParentCversion)
		j.TTLMS = t.TTL
	case *record.DeleteTxn:
		j.Path = t.Path
	case *record.SetDataTxn:
		data := shell.DataOf(t.Data)
		j.Path, j.DataJSON, j.Version = t.Path, &data, &t.Version
	case *record.SetACLTxn:
		j.Path, j.ACL, j.Version = t.Path, shell.ACLsOf(t.ACL), &t.Version
	case *record.CheckTxn:
		j.Path, j.Version = t.Path, &t.Version
	case *record.ErrorTxn:
		j.Error, j.Reason = int32(t.Err), t.Err.Error()
	case *record.CreateSessionTxn:
		j.TimeoutMS = t.TimeoutMS
	case *record.CloseSessionTxn:
		j.Paths = t.Paths
	case *record.MultiTxn:
		for _, o := range t.Ops {
			j.Ops = append(j.Ops, bodyOf(o.Type, o.Body))
		}
	}
	return j
}

func (j *bodyJSON) create(path string, data []byte, acl []wire.ACL, parentCversion int32) {
	d := shell.DataOf(data)
	j.Path, j.DataJSON, j.ACL, j.ParentCversion = path, &d, shell.ACLsOf(acl), &parentCversion
}

// sessionJSON is a session of a snapshot in a form for programs.
type sessionJSON struct {
	Session   string `json:"session"`
	TimeoutMS int32  `json:"timeout_ms"`
}

// nodeJSON is a znode of a snapshot in a form for programs.
type nodeJSON struct {
	Path string `json:"path"`
	shell.DataJSON
	ACL  []shell.ACLJSON `json:"acl"`
	Stat persistedJSON   `json:"stat"`
}

// persistedJSON is the part of a stat that a snapshot contains. Creates is the number of creates below the
// znode, without the deletions.
type persistedJSON struct {
	Czxid    string `json:"czxid"`
	Mzxid    string `json:"mzxid"`
	Pzxid    string `json:"pzxid"`
	Ctime    string `json:"ctime"`
	Mtime    string `json:"mtime"`
	Version  int32  `json:"version"`
	Creates  int32  `json:"creates"`
	Aversion int32  `json:"aversion"`
	Owner    string `json:"ephemeral_owner,omitempty"` // a session, or a number that marks a container or a TTL
}

func persistedOf(s record.StatPersisted) persistedJSON {
	j := persistedJSON{
		Czxid: s.Czxid.String(), Mzxid: s.Mzxid.String(), Pzxid: s.Pzxid.String(),
		Ctime: shell.Instant(s.Ctime), Mtime: shell.Instant(s.Mtime),
		Version: s.Version, Creates: s.Cversion, Aversion: s.Aversion,
	}
	if s.Owner != 0 {
		j.Owner = wire.SessionID(s.Owner).String()
	}
	return j
}

// endJSON is the end of a snapshot in a form for programs.
type endJSON struct {
	Zxid       string `json:"zxid"`
	Digest     string `json:"digest,omitempty"`
	DigestZxid string `json:"digest_zxid,omitempty"`
}

func endOf(zxid wire.Zxid, d *store.SnapshotDigest) endJSON {
	j := endJSON{Zxid: zxid.String()}
	if d != nil {
		j.Digest, j.DigestZxid = digestText(uint64(d.Tree)), d.Zxid.String()
	}
	return j
}
