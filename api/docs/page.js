// Shows the description in the page; the token stays in this tab.
const page = document.getElementById("page");
SwaggerUIBundle({
  url: page.dataset.description,
  domNode: page,
  deepLinking: true,
  validatorUrl: null, // it would send the address of the description to another host
  queryConfigEnabled: false, // nobody may make this page show another description by a link
  persistAuthorization: false,
});
