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

// Most is the maximum number of real nodes in a sandbox.
const Most = 100

// Runtimes lists the names of the node's container runtimes, to which a RuntimeClass can refer as
// its handler. Both run runc, so that tests can switch between two runtimes.
var Runtimes = []string{"runc", "runc-2"}

// Spec holds the names, addresses and paths of a real node. The process of the node reads it from a
// file.
type Spec struct {
	// Name is the name of the node.
	Name string `json:"name"`
	// Number is the number of the node in its sandbox, starting at 1.
	Number int `json:"number"`
	// Dir is the directory of the node's own files.
	Dir string `json:"dir"`
	// Programs is the directory with the programs that the node runs, such as the kubelet.
	Programs string `json:"programs"`
	// Images is the directory with the image archives that the node imports when it starts.
	Images string `json:"images"`
	// Logs is the directory of the logs of the node's programs.
	Logs string `json:"logs"`
	// Cgroup is the path of the node's cgroup in each cgroup hierarchy.
	Cgroup string `json:"cgroup"`
	// HostNetwork is the path of the API server's network namespace.
	HostNetwork string `json:"hostNetwork"`
	// APIServer is the API server's address in its network namespace.
	APIServer string `json:"apiServer"`
	// Service is the cluster IP of the API server.
	Service string `json:"service"`
	// DNS is the cluster IP of the DNS server.
	DNS string `json:"dns"`
	// Socket is the path of the socket through which the API server connects to the node, and
	// sandbox commands import images.
	Socket string `json:"socket"`
}

// Name returns the name of the node with the given number.
func Name(number int) string { return fmt.Sprintf("real-%d", number) }

// file returns the path of a file in the node's directory.
func (s Spec) file(name string) string { return filepath.Join(s.Dir, name) }

// state returns the path of a file or directory in the node's state directory, whose content is
// removed each time the node starts.
func (s Spec) state(name string) string { return filepath.Join(s.Dir, "state", name) }

func (s Spec) program(name string) string { return filepath.Join(s.Programs, name) }

// Names of the files that the sandbox writes to the node's directory before the node starts.
const (
	SpecFile    = "node.json"
	Kubeconfig  = "kubeconfig"
	Authority   = "ca.crt"
	ServingCert = "kubelet.crt"
	ServingKey  = "kubelet.key"
)

// Write writes the specification to a file in the node's directory.
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

// CgroupOf returns the cgroup that contains all nodes of the sandbox in dir.
func CgroupOf(dir string) string {
	sum := fnv.New64a()
	sum.Write([]byte(dir))
	return fmt.Sprintf("/tidekeeper-sandbox-%x", sum.Sum64())
}

// Network holds the addresses of a node and its pods. They exist only in the node's network
// namespace, so the same addresses may be in use elsewhere on the machine.
type Network struct {
	Node netip.Addr
	Pods netip.Prefix
}

// NetworkOf returns the addresses of the node with the given number.
func NetworkOf(number int) Network {
	n := byte(number)
	return Network{Node: netip.AddrFrom4([4]byte{172, 30, n, 1}), Pods: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, n, 0}), 24)}
}

// NumberOf returns the number of the real node that has the given name, or whose network contains
// the given address. It returns 0 if there is none.
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
