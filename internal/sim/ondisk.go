package sim

import (
	"bellwether/internal/peerwire"
	"bellwether/internal/sim/check"
	"bellwether/internal/store"
)

// acksEvery is of how many acknowledged transactions one is compared with the disk, because that takes long.
const acksEvery = 32

// diskFor returns what the disk of a server has when the server sends a packet. The disk is read for each
// packet about an epoch, and for some of those that acknowledge transactions. For others the result
// is what the store reports.
func (v *server) diskFor(p *peerwire.QuorumPacket) check.Durable {
	var d check.Durable
	switch p.Type {
	case peerwire.PacketLeaderInfo, peerwire.PacketAckEpoch:
		d = v.onDisk(false)
	case peerwire.PacketAck:
		if v.acks++; p.Zxid.Counter() == 0 || v.acks%acksEvery == 0 {
			d = v.onDisk(p.Zxid.Counter() != 0)
		}
	}
	if d.Known {
		return d
	}
	return v.reported()
}

// reported returns what the store of a server reports about its disk.
func (v *server) reported() check.Durable {
	return check.Durable{Accepted: v.saved.Accepted, Current: v.saved.Current, Zxid: v.store.Synced()}
}

// reliable reports whether the disk of a server holds what it was told to hold: it is not new, and has neither lied nor
// decayed.
func (v *server) reliable() bool {
	return v.store != nil && !v.blank && !v.lied && !v.rotten && !v.forgetful && (!v.unknown || v.has) && !v.fs.Lies()
}

// onDisk returns what a server would find on its disk if the power failed now, and the disk had written only what
// it must have written. It is not known if the disk has lied, has decayed or is new. Without history, only the epochs
// are read.
func (v *server) onDisk(history bool) check.Durable {
	if !v.reliable() {
		return check.Durable{}
	}
	fs := v.fs.Clone(1)
	fs.Crash(store.LoseAll)
	st, err := store.Open(fs, storeOptions())
	if err != nil {
		v.sim.fail("Durability", "%d could not open its data after a power failure: %v", v.id, err)
		return check.Durable{}
	}
	epochs, err := st.Epochs()
	if err != nil {
		v.sim.fail("Durability", "%d could not read its epochs after a power failure: %v", v.id, err)
		return check.Durable{}
	}
	d := check.Durable{Known: true, Accepted: epochs.Accepted, Current: epochs.Current}
	if !history {
		return d
	}
	res, err := st.Load(store.Discard{})
	if err != nil {
		v.sim.fail("Durability", "%d could not read its data after a power failure: %v", v.id, err)
		return check.Durable{}
	}
	d.Zxid = max(0, res.LastZxid)
	return d
}
