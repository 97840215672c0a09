// Building and patching nodes. Text always goes in as text; html() takes only what the server has sanitised.

let iconsUrl = '';

export function useIcons(url) { iconsUrl = url; }

/** el('button', { class: 'btn', type: 'button', onclick }, icon('stop'), 'Stop') */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else setAttribute(node, name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? '' : String(value));
}

export function setText(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** Only for HTML that came from the server's sanitiser. */
export function setHtml(node, html) {
  if (node.shownHtml === html) return;
  node.shownHtml = html;
  node.innerHTML = html;
}

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'i');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `${iconsUrl}#${name}`);
  svg.append(use);
  return svg;
}

/** Make the children of `parent` exactly `nodes`, in order, moving as few as possible: focus and selection survive. */
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let place = parent.firstElementChild;
  for (const node of nodes) {
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
}
