package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"io"
	"math"

	"bellwether/internal/record"
	"bellwether/wire"
)

// A crash leaves a write that was not fsynced in one of two states:
//
//   - cut: the process was killed, or the disk was full, in the middle of a write.
//     After the last byte written there are zeros or the file's end.
//   - torn: power failed, and any of the sectors written since the last fsync may be
//     missing. A log is only written where it was zeros before, so a missing sector
//     reads as zeros to its end.
//
// No crash explains anything else, such as a complete record with a wrong checksum, or a
// wrong length with an intact payload. Nor can a torn write begin more than syncMax
// before the last byte: everything before that was fsynced.

// syncMax limits the bytes that are written between two fsyncs, unless a single record is
// larger.
const syncMax = 8 << 20

// zerosLen is the number of bytes at the beginning of each record that are zeros: the high
// half of the checksum. They do not show that a sector is missing.
const zerosLen = 4

// judge decides why there is no whole record at offset s.off. n is the payload length
// found there; -1 if it is not valid.
func (s *logScanner) judge(n int64, what string) (verdict, error) {
	p := s.off
	last, err := s.lastByte(p)
	if err != nil {
		return verdict{}, err
	}
	if last == p {
		return verdict{endClean, p, ""}, nil
	}
	end := p + recordHeadLen
	if n >= 0 {
		end += n + 1
	}
	if last < end {
		return s.judgeShort(last, what)
	}
	torn, err := s.missingSector(p+zerosLen, end)
	if err != nil {
		return verdict{}, err
	}
	if torn < 0 || last > max(p+syncMax, end) {
		return verdict{endDamaged, p, what}, nil
	}
	off, err := s.oneByteOff(p, n)
	if err != nil {
		return verdict{}, err
	}
	if off >= 0 && !s.isMissing(p, off) {
		return verdict{endDamaged, p, fmt.Sprintf("%s: the byte at %d is wrong", what, off)}, nil
	}
	return s.judgeCut(last, fmt.Sprintf("%s: the sector at %d is missing", what, torn))
}

// judgeCut decides whether a crash explains a record of which a part is missing, possibly
// everything from last on. If the bytes before last contain a payload that matches the
// checksum, only the length of the record is wrong, and no crash causes that.
func (s *logScanner) judgeCut(last int64, what string) (verdict, error) {
	p := s.off
	if last-p >= recordHeadLen+record.TxnHeaderLen {
		whole, err := s.wholeWithin(p, last)
		if err != nil {
			return verdict{}, err
		}
		if whole {
			return verdict{endDamaged, p + 8, "the length of the record is wrong, its payload is whole"}, nil
		}
	}
	return verdict{endTorn, p, what}, nil
}

// wholeWithin reports whether the checksum at p fits a payload that ends,
// with its end byte, at or before last.
func (s *logScanner) wholeWithin(p, last int64) (bool, error) {
	b, err := s.win.at(p, int(min(last-p, RecordMax)))
	if err != nil {
		return false, err
	}
	sum := binary.BigEndian.Uint64(b)
	b = b[recordHeadLen:]
	h := adler32.New()
	h.Write(b[:record.TxnHeaderLen])
	for b = b[record.TxnHeaderLen:]; ; {
		i := bytes.IndexByte(b, recordEnd)
		if i < 0 {
			return false, nil
		}
		h.Write(b[:i])
		if uint64(h.Sum32()) == sum {
			return true, nil
		}
		h.Write(b[i : i+1])
		b = b[i+1:]
	}
}

// judgeShort decides whether a crash explains a record that is longer than the bytes up to
// last. If a whole record of a later transaction is among them, the length is wrong, and no
// crash causes that: a missing sector can only make a length smaller.
func (s *logScanner) judgeShort(last int64, what string) (verdict, error) {
	v, err := s.judgeCut(last, what)
	if err != nil || v.ending != endTorn {
		return v, err
	}
	at, zxid, err := s.laterRecord(last)
	if err != nil || at < 0 {
		return v, err
	}
	return verdict{endDamaged, s.off, fmt.Sprintf("%s, but transaction %v follows whole at offset %d", what, zxid, at)}, nil
}

// laterRecord looks for a whole record of a later transaction between the beginning of the
// record at s.off and last. It returns its offset and its zxid; the offset is -1 if there is
// none.
func (s *logScanner) laterRecord(last int64) (int64, wire.Zxid, error) {
	p := s.off
	b, err := s.win.at(p, int(last-p))
	if err != nil {
		return -1, 0, err
	}
	for at := 1; at+recordOver+record.TxnHeaderLen <= len(b); at++ {
		sum, n := binary.BigEndian.Uint64(b[at:]), int(int32(binary.BigEndian.Uint32(b[at+8:])))
		if sum > math.MaxUint32 || n < record.TxnHeaderLen || n > len(b)-at-recordOver || b[at+recordHeadLen+n] != recordEnd {
			continue
		}
		payload := b[at+recordHeadLen:][:n]
		if z := zxidOf(payload); z > s.last && uint64(adler32.Checksum(payload)) == sum {
			return p + int64(at), z, nil
		}
	}
	return -1, 0, nil
}

// judgeHeader decides whether a crash explains a file that is at least as long as a
// header and does not begin with one.
func (s *logScanner) judgeHeader() (verdict, error) {
	what := "the file does not begin with " + logMagic
	last, err := s.lastByte(0)
	if err != nil {
		return verdict{}, err
	}
	if last < logHeaderLen {
		return verdict{endTorn, 0, "the header is cut short"}, nil
	}
	missing, err := s.missingSector(0, logHeaderLen)
	if err != nil {
		return verdict{}, err
	}
	if missing == 0 && last <= syncMax {
		return verdict{endTorn, 0, what + ": its first sector is missing"}, nil
	}
	return verdict{endDamaged, 0, what}, nil
}

// missingSector looks for the first sector that touches [from, to) and contains only zeros,
// where bytes before from do not count. It returns the offset of the first byte of that
// sector that counts; -1 if there is no such sector.
func (s *logScanner) missingSector(from, to int64) (int64, error) {
	for at := from / sectorLen * sectorLen; at < min(to, s.size); at += sectorLen {
		start := max(at, from)
		b, err := s.win.at(start, int(min(at+sectorLen, s.size)-start))
		if err != nil {
			return -1, err
		}
		if allZero(b) {
			return start, nil
		}
	}
	return -1, nil
}

// isMissing reports whether off, in the record at p, lies in a missing sector.
func (s *logScanner) isMissing(p, off int64) bool {
	at, err := s.missingSector(max(p, off/sectorLen*sectorLen), off+1)
	return err == nil && at >= 0
}

// oneByteOff looks for a single byte of the record at p whose change explains why the
// record is not whole. It returns the byte's offset; -1 if there is none. The two sums of
// Adler-32 tell by how much a byte is wrong and how far from the end it is.
func (s *logScanner) oneByteOff(p, n int64) (int64, error) {
	if n < 0 || s.isMissing(p, p+zerosLen) || s.isMissing(p, p+recordHeadLen-1) {
		return -1, nil
	}
	b, err := s.win.at(p, int(n+recordOver))
	if err != nil {
		return -1, err
	}
	if end := int64(len(b)) - 1; b[end] != recordEnd {
		return p + end, nil
	}
	const mod = 65521
	payload := b[recordHeadLen : recordHeadLen+n]
	want, got := binary.BigEndian.Uint32(b[4:]), adler32.Checksum(payload)
	if at := oneByteApart(binary.BigEndian.Uint64(b), uint64(got)); at >= 0 {
		return p + at, nil
	}
	low := (int64(want&0xffff) - int64(got&0xffff) + mod) % mod
	high := (int64(want>>16) - int64(got>>16) + mod) % mod
	diff := low
	if diff > 255 {
		diff -= mod
	}
	if diff < -255 || diff == 0 {
		return -1, nil
	}
	for back := int64(1); back <= min(n, mod); back++ {
		if back*low%mod != high {
			continue
		}
		for at := n - back; at >= 0; at -= mod {
			if was := int64(payload[at]) + diff; 0 <= was && was <= 255 {
				return p + recordHeadLen + at, nil
			}
		}
	}
	return -1, nil
}

// oneByteApart returns the position, counted from the high end, at which two checksums
// differ, if they differ in a single byte; otherwise -1.
func oneByteApart(a, b uint64) int64 {
	for at := range int64(8) {
		if x := a ^ b; x != 0 && x&^(0xff<<(56-8*at)) == 0 {
			return at
		}
	}
	return -1
}

// lastByte returns the offset after the last byte at or after off that is not zero. If
// all are zero, it returns off.
func (s *logScanner) lastByte(off int64) (int64, error) {
	last := off
	buf := make([]byte, min(windowLen, max(0, s.size-off)))
	for at := off; at < s.size; {
		if h, ok := s.f.(holeFinder); ok {
			if at = h.nextData(at); at >= s.size {
				break
			}
		}
		b := buf[:min(int64(len(buf)), s.size-at)]
		if n, err := s.f.ReadAt(b, at); n < len(b) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		if !allZero(b) {
			last = at + int64(len(bytes.TrimRight(b, "\x00")))
		}
		at += int64(len(b))
	}
	return last, nil
}

// holeFinder is what a File may implement in addition: nextData returns the first offset
// at or after off that can contain anything but zeros.
type holeFinder interface{ nextData(off int64) int64 }

func allZero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeros))
		if !bytes.Equal(b[:n], zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

var zeros [4096]byte
