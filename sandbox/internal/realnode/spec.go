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

// Most is how many real nodes a sandbox can have.
const Most = 100

// Runtimes are the handlers that a RuntimeClass can name. Both are runc, so that a change of the
// handler can be tried.
var Runtimes = []string{"runc", "runc-2"}

// Spec are the names, addresses and files of a node. It is passed to the process of the node in a
// file.
type Spec struct {
	// Name of the node.
	Name string `json:"name"`
	// Number of the node in its sandbox, from 1.
	Number int `json:"number"`
	// Dir has the files of the node.
	Dir string `json:"dir"`
	// Programs is the directory with the kubelet and all else that runs on a node.
	Programs string `json:"programs"`
	// Images is a directory of image archives that the node starts with.
	Images string `json:"images"`
	// Logs of the programs.
	Logs string `json:"logs"`
	// Cgroup is the path of the node's cgroup from the root of each hierarchy.
	Cgroup string `json:"cgroup"`
	// HostNetwork is the file of the network namespace in which the API server is.
	HostNetwork string `json:"hostNetwork"`
	// APIServer is the address of the API server in that namespace.
	APIServer string `json:"apiServer"`
	// Service is the address at which pods find the API server.
	Service string `json:"service"`
	// DNS is the address at which pods ask for names.
	DNS string `json:"dns"`
	// Socket takes the API server's connections to the node.
	Socket string `json:"socket"`
}

// Name returns the name of a node by its number.
func Name(number int) string { return fmt.Sprintf("real-%d", number) }

// file is a file of the node that is made before it starts.
func (s Spec) file(name string) string { return filepath.Join(s.Dir, name) }

// state is a directory that is empty when the node starts.
func (s Spec) state(name string) string { return filepath.Join(s.Dir, "state", name) }

func (s Spec) program(name string) string { return filepath.Join(s.Programs, name) }

// Files of a node that the sandbox writes before it starts.
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

// CgroupOf is the cgroup of all nodes of the sandbox in a directory.
func CgroupOf(dir string) string {
	sum := fnv.New64a()
	sum.Write([]byte(dir))
	return fmt.Sprintf("/tidekeeper-sandbox-%x", sum.Sum64())
}

// Network are the addresses of a node. They exist only in its network namespace, so that they may
// be in use elsewhere on the machine.
type Network struct {
	Node netip.Addr
	Pods netip.Prefix
}

// NetworkOf returns the addresses of a node by its number.
func NetworkOf(number int) Network {
	n := byte(number)
	return Network{Node: netip.AddrFrom4([4]byte{172, 30, n, 1}), Pods: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, n, 0}), 24)}
}

// NumberOf returns the number of the real node that has a name, or that an address can
// only be on; or 0.
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

// Has reports whether an address is the node's, or that of a pod on it.
func (n Network) Has(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && (address == n.Node || n.Pods.Contains(address))
}
