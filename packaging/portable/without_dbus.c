// libpcap's capture from D-Bus, which requires libdbus: no devices. roci-pcap only reads files.
#include <stddef.h>

int dbus_findalldevs(void* devices, char* error);
int dbus_findalldevs(void* devices, char* error) {
  (void)devices;
  (void)error;
  return 0;
}
void* dbus_create(const char* device, char* error, int* is_ours);
void* dbus_create(const char* device, char* error, int* is_ours) {
  (void)device;
  (void)error;
  *is_ours = 0;
  return NULL;
}
