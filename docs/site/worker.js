// Browsers refuse workers on pages that are opened as files. There a worker's script runs in a hidden frame instead, so that search works.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.onload = () => {
        const inside = this.frame.contentWindow;
        inside.postMessage = data => setTimeout(() => this.onmessage?.(new MessageEvent("message", {data})));
        const script = inside.document.createElement("script");
        script.src = new URL(address, location);
        script.onload = () => {
          this.deliver = data => inside.dispatchEvent(new inside.MessageEvent("message", {data}));
          this.waiting.forEach(this.deliver);
        };
        script.onerror = event => this.onerror?.(event);
        inside.document.head.append(script);
      };
      document.documentElement.append(this.frame);
    }
    postMessage(data) {
      if (this.deliver) this.deliver(data);
      else this.waiting.push(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
