"""The types of a Container Linux Config, version 0.9 of the transpiler, and of the Ignition config 2.3 that it becomes."""

from __future__ import annotations

from slipway.fleet.bootstrap.ignition.clc.gostructs import table

CONTAINER_LINUX = table(
    """
Config
  Version int version
  Ignition Ignition ignition
  Storage Storage storage
  Systemd Systemd systemd
  Networkd Networkd networkd
  Passwd Passwd passwd
  Etcd *Etcd etcd
  Flannel *Flannel flannel
  Update *Update update
  Docker *Docker docker
  Locksmith *Locksmith locksmith
Ignition
  Config IgnitionConfig config
  Timeouts Timeouts timeouts
  Security Security security
IgnitionConfig
  Append []ConfigReference append
  Replace *ConfigReference replace
ConfigReference
  Source string source
  Verification Verification verification
Timeouts
  HTTPResponseHeaders *int http_response_headers
  HTTPTotal *int http_total
Security
  TLS TLS tls
TLS
  CertificateAuthorities []CaReference certificate_authorities
CaReference
  Source string source
  Verification Verification verification
Verification
  Hash Hash hash
Hash
  Function string function
  Sum string sum
Storage
  Disks []Disk disks
  Arrays []Raid raid
  Filesystems []Filesystem filesystems
  Files []File files
  Directories []Directory directories
  Links []Link links
Disk
  Device string device
  WipeTable bool wipe_table
  Partitions []Partition partitions
Partition
  Label *string label
  Number int number
  Size string size
  Start string start
  GUID string guid
  TypeGUID string type_guid
Raid
  Name string name
  Level string level
  Devices []string devices
  Spares int spares
  Options []string options
Filesystem
  Name string name
  Mount *Mount mount
  Path *string path
Mount
  Device string device
  Format string format
  Create *Create create
  WipeFilesystem bool wipe_filesystem
  Label *string label
  UUID *string uuid
  Options []string options
Create
  Force bool force
  Options []string options
FileUser
  Id *int id
  Name string name
FileGroup
  Id *int id
  Name string name
File
  Filesystem string filesystem
  Path string path
  User *FileUser user
  Group *FileGroup group
  Mode *int mode
  Contents FileContents contents
  Overwrite *bool overwrite
  Append bool append
FileContents
  Remote Remote remote
  Inline string inline
  Local string local
Remote
  Url string url
  Compression string compression
  Verification Verification verification
Directory
  Filesystem string filesystem
  Path string path
  User *FileUser user
  Group *FileGroup group
  Mode *int mode
  Overwrite *bool overwrite
Link
  Filesystem string filesystem
  Path string path
  User *FileUser user
  Group *FileGroup group
  Hard bool hard
  Target string target
  Overwrite *bool overwrite
Systemd
  Units []SystemdUnit units
SystemdUnit
  Name string name
  Enable bool enable
  Enabled *bool enabled
  Mask bool mask
  Contents string contents
  Dropins []SystemdUnitDropIn dropins
SystemdUnitDropIn
  Name string name
  Contents string contents
Networkd
  Units []NetworkdUnit units
NetworkdUnit
  Name string name
  Contents string contents
  Dropins []NetworkdUnitDropIn dropins
NetworkdUnitDropIn
  Name string name
  Contents string contents
Passwd
  Users []User users
  Groups []Group groups
User
  Name string name
  PasswordHash *string password_hash
  SSHAuthorizedKeys []string ssh_authorized_keys
  Create *UserCreate create
  UID *int uid
  Gecos string gecos
  HomeDir string home_dir
  NoCreateHome bool no_create_home
  PrimaryGroup string primary_group
  Groups []string groups
  NoUserGroup bool no_user_group
  System bool system
  NoLogInit bool no_log_init
  Shell string shell
UserCreate
  Uid *uint uid
  GECOS string gecos
  Homedir string home_dir
  NoCreateHome bool no_create_home
  PrimaryGroup string primary_group
  Groups []string groups
  NoUserGroup bool no_user_group
  System bool system
  NoLogInit bool no_log_init
  Shell string shell
Group
  Name string name
  Gid *uint gid
  PasswordHash string password_hash
  System bool system
Etcd
Flannel
Update
  Group UpdateGroup group
  Server UpdateServer server
  PCRPolicyServer UpdatePCRPolicyServer pcr_policy_server
  DownloadUser UpdateDownloadUser download_user
  DownloadPassword UpdateDownloadPassword download_password
  MachineAlias UpdateMachineAlias machine_alias
Docker
  Flags []string flags
Locksmith
  RebootStrategy *string reboot_strategy
  WindowStart *string window_start
  WindowLength *string window_length
  Group *string group
  EtcdEndpoints *string etcd_endpoints
  EtcdCAFile *string etcd_cafile
  EtcdCertFile *string etcd_certfile
  EtcdKeyFile *string etcd_keyfile
"""
)

IGNITION = table(
    """
Config
  Ignition Ignition ignition
  Networkd Networkd networkd?
  Passwd Passwd passwd?
  Storage Storage storage?
  Systemd Systemd systemd?
Ignition
  Config IgnitionConfig config?
  Security Security security?
  Timeouts Timeouts timeouts?
  Version string version?
IgnitionConfig
  Append []ConfigReference append?
  Replace *ConfigReference replace?
ConfigReference
  Source string source
  Verification Verification verification?
Verification
  Hash *string hash?
Security
  ^TLS TLS tls?
TLS
  CertificateAuthorities []CaReference certificateAuthorities?
CaReference
  Source string source
  Verification Verification verification?
Timeouts
  HTTPResponseHeaders *int httpResponseHeaders?
  HTTPTotal *int httpTotal?
Networkd
  Units []Networkdunit units?
Networkdunit
  Contents string contents?
  Dropins []NetworkdDropin dropins?
  Name string name
NetworkdDropin
  Contents string contents?
  Name string name
Passwd
  Groups []PasswdGroup groups?
  Users []PasswdUser users?
PasswdGroup
  Gid *int gid?
  Name string name
  PasswordHash string passwordHash?
  System bool system?
PasswdUser
  Create *Usercreate create?
  Gecos string gecos?
  Groups []string groups?
  HomeDir string homeDir?
  Name string name
  NoCreateHome bool noCreateHome?
  NoLogInit bool noLogInit?
  NoUserGroup bool noUserGroup?
  PasswordHash *string passwordHash?
  PrimaryGroup string primaryGroup?
  SSHAuthorizedKeys []string sshAuthorizedKeys?
  Shell string shell?
  System bool system?
  UID *int uid?
Usercreate
  Gecos string gecos?
  Groups []string groups?
  HomeDir string homeDir?
  NoCreateHome bool noCreateHome?
  NoLogInit bool noLogInit?
  NoUserGroup bool noUserGroup?
  PrimaryGroup string primaryGroup?
  Shell string shell?
  System bool system?
  UID *int uid?
Storage
  Directories []Directory directories?
  Disks []Disk disks?
  Files []File files?
  Filesystems []Filesystem filesystems?
  Links []Link links?
  Raid []Raid raid?
Node
  Filesystem string filesystem
  Group *NodeGroup group?
  Overwrite *bool overwrite?
  Path string path
  User *NodeUser user?
NodeGroup
  ID *int id?
  Name string name?
NodeUser
  ID *int id?
  Name string name?
Directory
  +Node
  Mode *int mode?
File
  +Node
  Append bool append?
  Contents FileContents contents?
  Mode *int mode?
FileContents
  Compression string compression?
  Source string source?
  Verification Verification verification?
Link
  +Node
  Hard bool hard?
  Target string target
Disk
  Device string device
  Partitions []Partition partitions?
  WipeTable bool wipeTable?
Partition
  GUID string guid?
  Label *string label?
  Number int number?
  ShouldExist *bool shouldExist?
  Size *int size?
  SizeMiB *int sizeMiB?
  Start *int start?
  StartMiB *int startMiB?
  TypeGUID string typeGuid?
  WipePartitionEntry bool wipePartitionEntry?
Filesystem
  Mount *Mount mount?
  Name string name?
  Path *string path?
Mount
  Create *Create create?
  Device string device
  Format string format
  Label *string label?
  Options []string options?
  UUID *string uuid?
  WipeFilesystem bool wipeFilesystem?
Create
  Force bool force?
  Options []string options?
Raid
  Devices []string devices
  Level string level
  Name string name
  Options []string options?
  Spares int spares?
Systemd
  Units []Unit units?
Unit
  Contents string contents?
  Dropins []SystemdDropin dropins?
  Enable bool enable?
  Enabled *bool enabled?
  Mask bool mask?
  Name string name
SystemdDropin
  Contents string contents?
  Name string name
"""
)
