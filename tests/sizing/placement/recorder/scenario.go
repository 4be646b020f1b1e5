package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Scenario is what is to be decided: manifests as Kubernetes has them, and how spot is priced.
type Scenario struct {
	Name          string              `json:"name"`
	NodePools     []*karpv1.NodePool  `json:"nodePools"`
	DaemonSets    []*appsv1.DaemonSet `json:"daemonSets"`
	Pods          []PodGroup          `json:"pods"`
	ExistingNodes []ExistingNode      `json:"existingNodes"`
	SpotModel     string              `json:"spotModel"`
	SpotRatio     *float64            `json:"spotRatio"`
}

// PodGroup is Count equal pods, named for the pod's metadata.name.
type PodGroup struct {
	Count int        `json:"count"`
	Pod   corev1.Pod `json:"pod"`
}

// ExistingNode is a node that is registered and initialized, with pods of the groups of the scenario on it.
type ExistingNode struct {
	Name         string `json:"name"`
	NodePool     string `json:"nodePool"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// Pods are the pods that run on the node: their group and how many of them. They count in addition to the
	// pending pods of Scenario.Pods.
	Pods map[string]int `json:"pods"`
}

// Launch is what would be sent to EC2.
type Launch struct {
	CapacityType       string   `json:"capacity_type"`
	AllocationStrategy string   `json:"allocation_strategy"`
	InstanceTypes      []string `json:"instance_types"`
	Error              string   `json:"error"`
}

// Claim is one new node: the instance types it may become are sorted by name.
type Claim struct {
	NodePool      string         `json:"node_pool"`
	Pods          map[string]int `json:"pods"`
	InstanceTypes []string       `json:"instance_types"`
	Launch        Launch         `json:"launch"`
}

// Decision is the answer. ExistingNodes is there only if the scenario has any: the pods newly placed on each.
type Decision struct {
	NodeClaims    []Claim                   `json:"node_claims"`
	Unschedulable map[string]int            `json:"unschedulable"`
	ExistingNodes map[string]map[string]int `json:"existing_nodes,omitempty"`
}
