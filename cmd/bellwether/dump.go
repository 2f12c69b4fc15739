package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/record"
	"bellwether/internal/shell"
	"bellwether/internal/store"
	tty "bellwether/internal/terminal"
	"bellwether/wire"
)

const dumpLong = `Print the content of transaction logs and snapshots: one line for each record, znode or session, or with -o json one
JSON value per line. A damaged log is printed up to the damage; an error then names the offset of the damage.`

func newDataDump() *cobra.Command {
	var f outputFlag
	c := &cobra.Command{
		Use:     "dump FILE...",
		Short:   "print transaction logs and snapshots",
		Long:    dumpLong,
		Example: "  bellwether data dump bellwether-data/version-2/log.*\n  bellwether data dump -o json snapshot.1f.gz | jq .path",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// At a terminal the records themselves show the progress.
			bar := newReadBar("data dump", f.json() || tty.Is(os.Stdout), args...)
			defer bar.Close()
			p := printer{w: cmd.OutOrStdout(), json: f.json(), fs: bar.fs()}
			for _, file := range args {
				err := p.file(file)
				if unwritten := (*fs.PathError)(nil); errors.As(err, &unwritten) && unwritten.Op == "write" {
					return shell.NotWritten(unwritten) // not an error of the file that is read
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(c)
	return c
}

// printer writes log records as text or as JSON.
type printer struct {
	w    io.Writer
	json bool
	fs   store.FS
}

func (p printer) file(name string) error {
	if strings.HasPrefix(filepath.Base(name), "snapshot.") {
		return store.DumpSnapshot(p.fs, name, &snapshotPrinter{printer: p, acls: map[int64][]wire.ACL{}})
	}
	for e, err := range store.DumpLog(p.fs, name) {
		if err != nil {
			return err
		}
		if err := p.txn(e); err != nil {
			return err
		}
	}
	return nil
}

func (p printer) txn(e store.LogEntry) error {
	if p.json {
		return p.line(txnOf(e))
	}
	t := e.Txn
	_, err := fmt.Fprintf(p.w, "%s session %v cxid 0x%x zxid %v %v %s\n",
		shell.Instant(t.Time), t.Session, uint32(t.Cxid), t.Zxid, t.Type, bodyText(t.Body))
	return err
}

func (p printer) line(v any) error {
	enc := json.NewEncoder(p.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// bodyText returns the body of a transaction as text for people.
func bodyText(b record.TxnBody) string {
	switch t := b.(type) {
	case *record.CreateTxn:
		kind := ""
		if t.Ephemeral {
			kind = " ephemeral"
		}
		return fmt.Sprintf("%s %s acl %s%s parent cversion %d", t.Path, dataText(t.Data), aclsText(t.ACL), kind, t.ParentCversion)
	case *record.CreateContainerTxn:
		return fmt.Sprintf("%s %s acl %s parent cversion %d", t.Path, dataText(t.Data), aclsText(t.ACL), t.ParentCversion)
	case *record.CreateTTLTxn:
		return fmt.Sprintf("%s %s acl %s parent cversion %d ttl %d ms", t.Path, dataText(t.Data), aclsText(t.ACL), t.ParentCversion, t.TTL)
	case *record.DeleteTxn:
		return t.Path
	case *record.SetDataTxn:
		return fmt.Sprintf("%s %s version %d", t.Path, dataText(t.Data), t.Version)
	case *record.SetACLTxn:
		return fmt.Sprintf("%s acl %s version %d", t.Path, aclsText(t.ACL), t.Version)
	case *record.CheckTxn:
		return fmt.Sprintf("%s version %d", t.Path, t.Version)
	case *record.ErrorTxn:
		return fmt.Sprintf("%d %v", int32(t.Err), t.Err)
	case *record.CreateSessionTxn:
		return fmt.Sprintf("%d ms", t.TimeoutMS)
	case *record.CloseSessionTxn:
		return strings.Join(t.Paths, " ")
	case *record.MultiTxn:
		var ops []string
		for _, o := range t.Ops {
			ops = append(ops, fmt.Sprintf("%v %s", o.Type, bodyText(o.Body)))
		}
		return strings.Join(ops, "; ")
	}
	return ""
}

// dataShown is the number of bytes of a znode's data that a line shows.
const dataShown = 64

func dataText(b []byte) string {
	if b == nil {
		return "null"
	}
	more := ""
	if len(b) > dataShown {
		more = fmt.Sprintf("… (%d bytes)", len(b))
		b = b[:dataShown]
	}
	return strconv.Quote(string(b)) + more
}

func aclsText(list []wire.ACL) string {
	var entries []string
	for _, a := range shell.ACLsOf(list) {
		entries = append(entries, a.Scheme+":"+a.ID+":"+a.Perms)
	}
	return strings.Join(entries, ",")
}

// snapshotPrinter prints the content of a snapshot while the snapshot is read.
type snapshotPrinter struct {
	printer
	acls map[int64][]wire.ACL
}

func (p *snapshotPrinter) Reset() {}

func (p *snapshotPrinter) Session(id wire.SessionID, timeoutMS int32) error {
	if p.json {
		return p.line(sessionJSON{id.String(), timeoutMS})
	}
	_, err := fmt.Fprintf(p.w, "session %v timeout %d ms\n", id, timeoutMS)
	return err
}

func (p *snapshotPrinter) ACL(key int64, acl []wire.ACL) error {
	p.acls[key] = acl
	return nil
}

func (p *snapshotPrinter) Node(path string, n *record.DataNode) error {
	if path == "" {
		path = "/"
	}
	acl := p.acls[n.ACL]
	if n.ACL == -1 {
		acl = wire.OpenACL()
	}
	if p.json {
		return p.line(nodeJSON{path, shell.DataOf(n.Data), shell.ACLsOf(acl), persistedOf(n.Stat)})
	}
	s := n.Stat
	_, err := fmt.Fprintf(p.w, "%s %s acl %s czxid %v mzxid %v pzxid %v version %d creates %d aversion %d owner 0x%x\n",
		path, dataText(n.Data), aclsText(acl), s.Czxid, s.Mzxid, s.Pzxid, s.Version, s.Cversion, s.Aversion, uint64(s.Owner))
	return err
}

func (p *snapshotPrinter) SnapshotDone(zxid wire.Zxid, d *store.SnapshotDigest) error {
	digest := "none"
	if d != nil {
		digest = fmt.Sprintf("%d at %v", int64(d.Tree), d.Zxid)
	}
	if p.json {
		return p.line(endOf(zxid, d))
	}
	_, err := fmt.Fprintf(p.w, "zxid %v digest %s\n", zxid, digest)
	return err
}

func (p *snapshotPrinter) Txn(*record.Txn) error { return nil }
