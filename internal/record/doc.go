// Package record holds what transaction logs and snapshots contain: a transaction
// ([Txn]) with its header, body and digest, and a znode as a snapshot stores it
// ([DataNode]). A leader sends its learners transactions in the same form.
//
// Its records are coded as those of package wire. [DecodeTxn] also reads the forms
// that older servers wrote.
//
// The package also holds the values that every server of an ensemble must compute
// alike from what is stored: session ids, the owner field of znodes with a TTL, the
// suffix of sequential names, the cversion that clients see.
//
// The package decides nothing, opens nothing and starts no goroutine; its values are
// safe for concurrent reading. Read txn.go first, then body.go.
package record
