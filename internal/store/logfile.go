package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"

	"bellwether/internal/record"
	"bellwether/wire"
)

// A log file is a header of 16 bytes and records without gaps:
//
//	0  "ZKLG", int version 2, long dbid 0
//	16 long Adler-32 of the payload, int length n, n bytes of payload, 'B'
//
// After the last record there are zeros, or the file ends. Numbers are big-endian.
const (
	logMagic      = "ZKLG"
	logVersion    = 2
	logHeaderLen  = 16
	recordHeadLen = 12
	recordEnd     = 'B'
	recordOver    = recordHeadLen + 1 // bytes of a record in addition to its payload
)

// RecordMax is the largest payload that is read, in bytes. ZooKeeper's limit is 2 MiB
// unless jute.maxbuffer is raised.
const RecordMax = 64 << 20

// appendLogHeader appends the header of a new log.
func appendLogHeader(dst []byte) []byte {
	dst = append(dst, logMagic...)
	dst = binary.BigEndian.AppendUint32(dst, logVersion)
	return binary.BigEndian.AppendUint64(dst, 0)
}

// appendRecord appends the record of t. It encodes through c, so that memory is reused.
func appendRecord(c *wire.Coder, dst []byte, t *record.Txn) ([]byte, error) {
	start := len(dst)
	var head [recordHeadLen]byte
	*c = wire.Encoder(append(dst, head[:]...))
	t.Code(c)
	if c.Err() != nil {
		return dst, fmt.Errorf("transaction %v: %w", t.Zxid, c.Err())
	}
	dst = c.Bytes()
	payload := dst[start+recordHeadLen:]
	if len(payload) > RecordMax {
		return dst[:start], fmt.Errorf("transaction %v: %d bytes, more than %d", t.Zxid, len(payload), RecordMax)
	}
	binary.BigEndian.PutUint64(dst[start:], uint64(adler32.Checksum(payload)))
	binary.BigEndian.PutUint32(dst[start+8:], uint32(len(payload)))
	return append(dst, recordEnd), nil
}

// logRecord is one whole record of a log file.
type logRecord struct {
	off, end int64
	sum      uint32
	zxid     wire.Zxid
	payload  []byte // valid until the next call of the scanner
}

// logScanner reads the records of one log file from front to back.
type logScanner struct {
	f    File
	path string
	size int64     // size of the file when it was opened
	off  int64     // offset of the next record
	last wire.Zxid // zxid of the record before off; 0: there is none
	// inner says that another log follows this one and must continue where this one ends. The
	// scanner then need not find out why the records of this log end.
	inner bool
	win   window
}

// openLog opens a log for scanning.
func openLog(fs FS, path string) (*logScanner, error) {
	f, err := openHistory(fs, path)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &logScanner{f: f, path: path, size: size, win: window{r: f, size: size}}, nil
}

func (s *logScanner) close() error { return s.f.Close() }

// ending is the way in which the records of a file end.
type ending int

const (
	endNone    ending = iota // not the end: what was read is sound
	endClean                 // only zeros follow, or the end of the file
	endTorn                  // the last record or the header is incomplete, as a crash can leave it
	endDamaged               // a record or the header is wrong in a way that no crash causes
)

// verdict says how and where the records of a file end.
type verdict struct {
	ending ending
	off    int64
	what   string
}

// header reads the file's header; endNone means that it is sound.
func (s *logScanner) header() (verdict, error) {
	b, err := s.win.at(0, int(min(logHeaderLen, s.size)))
	if err != nil {
		return verdict{}, err
	}
	if len(b) == logHeaderLen && string(b[:4]) == logMagic {
		s.off = logHeaderLen
		return verdict{}, nil
	}
	if len(b) < logHeaderLen {
		return verdict{endTorn, 0, fmt.Sprintf("only %d bytes of header", len(b))}, nil
	}
	return s.judgeHeader()
}

// next reads the record at s.off. If there is no record, the verdict says why.
func (s *logScanner) next() (logRecord, verdict, error) {
	if s.size-s.off < recordHeadLen {
		v, err := s.judge(-1, "the record is cut short")
		return logRecord{}, v, err
	}
	head, err := s.win.at(s.off, recordHeadLen)
	if err != nil {
		return logRecord{}, verdict{}, err
	}
	sum := binary.BigEndian.Uint64(head)
	n := int64(int32(binary.BigEndian.Uint32(head[8:])))
	var what string
	switch {
	case s.inner && allZero(head):
		return logRecord{}, verdict{endClean, s.off, ""}, nil
	case n < record.TxnHeaderLen || n > RecordMax:
		what, n = fmt.Sprintf("unreasonable record length %d", n), -1
	case s.size-s.off < n+recordOver:
		what = "the record is cut short"
	default:
		rec, bad, err := s.body(sum, int(n))
		if bad == "" || err != nil {
			return rec, verdict{}, err
		}
		what = bad
	}
	v, err := s.judge(n, what)
	return logRecord{}, v, err
}

// body reads and checks what follows the head of the record at s.off.
func (s *logScanner) body(sum uint64, n int) (rec logRecord, bad string, err error) {
	// Read the last byte first, so that a wrong length does not make this read 64 MiB.
	if end := s.off + int64(n+recordOver); !s.win.holds(s.off, n+recordOver) {
		var last [1]byte
		if _, err := s.f.ReadAt(last[:], end-1); err != nil {
			return rec, "", err
		}
		if last[0] != recordEnd {
			return rec, "the record has no end byte", nil
		}
	}
	b, err := s.win.at(s.off, n+recordOver)
	if err != nil {
		return rec, "", err
	}
	payload := b[recordHeadLen : recordHeadLen+n]
	if b[len(b)-1] != recordEnd {
		return rec, "the record has no end byte", nil
	}
	if got := adler32.Checksum(payload); uint64(got) != sum {
		return rec, fmt.Sprintf("checksum of the record is %08x, stored is %08x", got, sum), nil
	}
	rec = logRecord{off: s.off, end: s.off + int64(len(b)), sum: uint32(sum), payload: payload}
	rec.zxid = zxidOf(payload)
	s.off, s.last = rec.end, rec.zxid
	return rec, "", nil
}

// zxidOf returns the zxid in the payload of a record.
func zxidOf(payload []byte) wire.Zxid { return wire.Zxid(binary.BigEndian.Uint64(payload[12:])) }

// windowLen is how much of a file is read at a time, in bytes. The first reads of a file are
// smaller, because of most logs only the first transaction is needed.
const (
	windowLen = 256 << 10
	firstLen  = 4 << 10
)

// window is a part of a file, held in memory.
type window struct {
	r     io.ReaderAt
	size  int64
	start int64
	ahead int64 // how much the last read asked for
	buf   []byte
}

// holds reports whether n bytes at off are in memory.
func (w *window) holds(off int64, n int) bool {
	return off >= w.start && off+int64(n) <= w.start+int64(len(w.buf))
}

// at returns the n bytes at off. The file must be long enough. The bytes are valid until
// the next call.
func (w *window) at(off int64, n int) ([]byte, error) {
	if !w.holds(off, n) {
		w.ahead = min(max(4*w.ahead, firstLen), windowLen)
		want := max(n, int(min(w.ahead, w.size-off)))
		if cap(w.buf) < want {
			w.buf = make([]byte, want)
		}
		w.buf = w.buf[:want]
		got, err := w.r.ReadAt(w.buf, off)
		w.start, w.buf = off, w.buf[:got]
		if got < n {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return w.buf[off-w.start:][:n], nil
}
