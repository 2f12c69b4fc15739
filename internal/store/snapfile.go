package store

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/adler32"
	"io"

	"bellwether/internal/record"
	"bellwether/wire"
)

// A snapshot file, uncompressed, is
//
//	header    "ZKSN", int version 2, long dbid -1
//	sessions  int count, count × (long id, int timeout in ms)
//	ACLs      int count, count × (long key, ACL list)
//	nodes     (string path, node)…, the root as ""; then the string "/"
//	seal 1    long Adler-32 of every byte before it, the string "/"
//	digest    long zxid, int version, long tree digest      (optional)
//	seal 2    as seal 1
//	lastZxid  long zxid                                     (3.9, optional)
//	seal 3    as seal 1
//
// The file may end after each seal. Numbers are big-endian.
const (
	snapshotMagic     = "ZKSN"
	snapshotVersion   = 2
	snapshotHeaderLen = 16
	snapshotDBID      = ^uint64(0)
	nodesEnd          = "/"
	sealLen           = 13
)

// snapshotBufferLen is how much of a snapshot is collected for one write, in bytes.
const snapshotBufferLen = 256 << 10

// EncodeSnapshot writes src to w as the stream of a plain snapshot file named after zxid.
// Of o it uses only OmitDigest and OmitLastZxid. It returns the digest of src after the
// last pass.
func EncodeSnapshot(w io.Writer, zxid wire.Zxid, src Source, o Options) (SnapshotDigest, error) {
	e := snapshotEncoder{w: w, sum: adler32.New()}
	e.buf = append(e.buf, snapshotMagic...)
	e.buf = binary.BigEndian.AppendUint32(e.buf, snapshotVersion)
	e.buf = binary.BigEndian.AppendUint64(e.buf, snapshotDBID)
	if err := e.body(src); err != nil {
		return SnapshotDigest{}, err
	}
	e.seal()
	digest := SnapshotDigest{Version: record.DigestVersion}
	digest.Zxid, digest.Tree = src.Digest()
	if !o.OmitDigest {
		e.digest(digest)
		e.seal()
		if !o.OmitLastZxid {
			e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(zxid))
			e.seal()
		}
	}
	e.flush()
	return digest, e.err
}

// snapshotEncoder collects a snapshot in buf, and adds what it writes to the checksum.
type snapshotEncoder struct {
	w   io.Writer
	sum hash.Hash32
	buf []byte
	c   wire.Coder // reused for every record
	err error
}

// body writes the part that files and streams have in common.
func (e *snapshotEncoder) body(src Source) error {
	if err := e.sessions(src); err != nil {
		return err
	}
	if err := e.acls(src); err != nil {
		return err
	}
	if err := e.nodes(src); err != nil {
		return err
	}
	e.text(nodesEnd)
	return nil
}

func (e *snapshotEncoder) sessions(src Source) error {
	n, list := uint32(0), []byte(nil)
	err := src.Sessions(func(id wire.SessionID, timeoutMS int32) error {
		n++
		list = binary.BigEndian.AppendUint64(list, uint64(id))
		list = binary.BigEndian.AppendUint32(list, uint32(timeoutMS))
		return nil
	})
	e.buf = append(binary.BigEndian.AppendUint32(e.buf, n), list...)
	return err
}

func (e *snapshotEncoder) acls(src Source) error {
	n, list := uint32(0), []byte(nil)
	err := src.ACLs(func(key int64, acl []wire.ACL) error {
		n++
		e.c = wire.Encoder(binary.BigEndian.AppendUint64(list, uint64(key)))
		e.c.ACLs(&acl)
		list = e.c.Bytes()
		return e.c.Err()
	})
	e.buf = append(binary.BigEndian.AppendUint32(e.buf, n), list...)
	return err
}

func (e *snapshotEncoder) nodes(src Source) error {
	return src.Nodes(func(path string, n *record.DataNode) error {
		if path == nodesEnd {
			return fmt.Errorf("snapshot: the path of the root must be %q, not %q", "", nodesEnd)
		}
		e.c = wire.Encoder(e.buf)
		e.c.String(&path)
		n.Code(&e.c)
		e.buf = e.c.Bytes()
		if err := e.c.Err(); err != nil {
			return err
		}
		if len(e.buf) >= snapshotBufferLen {
			e.flush()
		}
		return e.err
	})
}

func (e *snapshotEncoder) text(s string) {
	e.buf = append(binary.BigEndian.AppendUint32(e.buf, uint32(len(s))), s...)
}

func (e *snapshotEncoder) digest(d SnapshotDigest) {
	e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(d.Zxid))
	e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(d.Version))
	e.buf = binary.BigEndian.AppendUint64(e.buf, d.Tree)
}

// seal appends the checksum of all bytes before it.
func (e *snapshotEncoder) seal() {
	e.flush()
	e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(e.sum.Sum32()))
	e.text(nodesEnd)
}

// flush adds the buffer to the checksum and writes it. After an error it does nothing,
// and the first error is kept.
func (e *snapshotEncoder) flush() {
	e.sum.Write(e.buf)
	if e.err == nil {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
}
