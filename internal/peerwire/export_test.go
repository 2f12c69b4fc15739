package peerwire

// What tests outside of the package need to see.
const (
	NotificationBareLen  = notificationBareLen
	NotificationPlainLen = notificationPlainLen
	PacketTypeEnd        = packetTypeEnd
	TouchedSessionLen    = touchedSessionLen
)
