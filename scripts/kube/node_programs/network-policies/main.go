// kube-network-policies without its own flags and its server of metrics: it decides on each new connection that the node's firewall hands
// to its queue.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of a user who may watch pods, namespaces and network policies")
	node := flag.String("node", "", "name of the node in the API")
	queue := flag.Int("queue", 0, "number of the NFQUEUE that new connections are in")
	flag.Parse()
	if err := enforce(*kubeconfig, networkpolicy.Config{NodeName: *node, QueueID: *queue}); err != nil {
		log.Fatal(err)
	}
}

func enforce(kubeconfig string, config networkpolicy.Config) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	core := shared.Core().V1()
	controller, err := networkpolicy.NewController(
		client, shared.Networking().V1().NetworkPolicies(), core.Namespaces(), core.Pods(), nil, nil, nil, nil, config)
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	return controller.Run(ctx)
}
