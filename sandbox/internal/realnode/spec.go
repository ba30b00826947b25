// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
)

// Most is the maximum number of real nodes of a sandbox.
const Most = 100

// Runtimes are the handlers for RuntimeClasses. Both run runc, so that a change of the handler can be tested.
var Runtimes = []string{"runc", "runc-2"}

// Spec has the names, addresses and paths of a node. The process of the node reads it from a file.
type Spec struct {
	// Name is the name of the node.
	Name string `json:"name"`
	// Number is the number of the node in its sandbox, from 1 on.
	Number int `json:"number"`
	// Dir is the directory of the node's files.
	Dir string `json:"dir"`
	// Programs is the directory of the kubelet and the other programs.
	Programs string `json:"programs"`
	// Images is the directory of the image archives that the node imports at its start.
	Images string `json:"images"`
	// Logs is the directory of the programs' logs.
	Logs string `json:"logs"`
	// Cgroup is the path of the node's cgroup in each hierarchy.
	Cgroup string `json:"cgroup"`
	// HostNetwork is the path of the API server's network namespace.
	HostNetwork string `json:"hostNetwork"`
	// APIServer is the address of the API server in that namespace.
	APIServer string `json:"apiServer"`
	// Service is the cluster IP of the API server.
	Service string `json:"service"`
	// DNS is the cluster IP of the DNS server.
	DNS string `json:"dns"`
	// Socket is the path of the socket for the API server's connections to the node.
	Socket string `json:"socket"`
}

// Name returns the name of the node with a number.
func Name(number int) string { return fmt.Sprintf("real-%d", number) }

// file returns the path of a file that is written before the node starts.
func (s Spec) file(name string) string { return filepath.Join(s.Dir, name) }

// state returns the path of a directory that is empty when the node starts.
func (s Spec) state(name string) string { return filepath.Join(s.Dir, "state", name) }

func (s Spec) program(name string) string { return filepath.Join(s.Programs, name) }

// Files that the sandbox writes before the node starts.
const (
	SpecFile    = "node.json"
	Kubeconfig  = "kubeconfig"
	Authority   = "ca.crt"
	ServingCert = "kubelet.crt"
	ServingKey  = "kubelet.key"
)

// Write writes the specification into the node's directory.
func (s Spec) Write() error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(s.file(SpecFile), data, 0o600)
}

func readSpec(file string) (Spec, error) {
	var s Spec
	data, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}

// CgroupOf returns the cgroup of all nodes of the sandbox in a directory.
func CgroupOf(dir string) string {
	sum := fnv.New64a()
	sum.Write([]byte(dir))
	return fmt.Sprintf("/tidekeeper-sandbox-%x", sum.Sum64())
}

// Network has the addresses of a node. They exist only in its network namespace, and may be in use elsewhere
// on the machine.
type Network struct {
	Node netip.Addr
	Pods netip.Prefix
}

// NetworkOf returns the addresses of the node with a number.
func NetworkOf(number int) Network {
	n := byte(number)
	return Network{Node: netip.AddrFrom4([4]byte{172, 30, n, 1}), Pods: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, n, 0}), 24)}
}

// NumberOf returns the number of the real node with a name, or whose network contains an address; 0 if there
// is none.
func NumberOf(host string) int {
	var number int
	if _, err := fmt.Sscanf(host, "real-%d", &number); err == nil && host == Name(number) && number > 0 {
		return number
	}
	address, err := netip.ParseAddr(host)
	if err != nil || !address.Is4() {
		return 0
	}
	if number := int(address.As4()[2]); NetworkOf(number).Has(host) {
		return number
	}
	return 0
}

// Has reports whether an address belongs to the node or to its pods.
func (n Network) Has(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && (address == n.Node || n.Pods.Contains(address))
}
